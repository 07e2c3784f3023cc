// Upgrades and the tunnels that they become, on each runtime.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import { type RawClient, type RawUpstream, openRaw, startUpstream } from "../rig/raw.ts";

const SWITCH =
  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n";

for (const runtime of runtimes) {
  describe(`tunnels on ${runtime}`, () => {
    let proxy: Proxy;
    before(async () => {
      proxy = await startProxy(runtime, { plan: { timeouts: { tunnelIdleMs: 400 } } });
    });
    after(() => proxy.stop());

    async function openTunnel(
      early = "",
      answer = SWITCH,
    ): Promise<{ client: RawClient; upstream: RawClient; up: RawUpstream; head: string }> {
      let head = "";
      const up = await startUpstream((client) => {
        if (head !== "" || !client.text.includes("\r\n\r\n")) return;
        head = client.text.slice(0, client.text.indexOf("\r\n\r\n") + 4);
        client.text = client.text.slice(head.length);
        client.socket.write(answer);
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `GET /u/${up.port}/ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n${early}`,
      );
      await client.untilText("\r\n\r\n");
      return { client, upstream: up.connections[0]!, up, head };
    }

    async function gone(up: RawUpstream): Promise<void> {
      await proxy.until(
        ({ pools, server }) =>
          pools[up.port]!.open === 0 && server.tunnels === 0 && server.connections === 1,
      );
      await up.stop();
    }

    test("the upgrade is forwarded, the 101 is returned, bytes pass in both directions", async () => {
      const { client, upstream, up, head } = await openTunnel();
      assert.match(head, /Upgrade: websocket\r\n/);
      assert.match(head, /Connection: Upgrade\r\n/);
      assert.match(
        client.text,
        /^HTTP\/1\.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\nX-Seen: 1 101\r\n\r\n$/,
      );
      client.text = "";
      upstream.socket.write("from upstream");
      await client.untilText("from upstream");
      client.socket.write("from client");
      await upstream.untilText("from client");
      assert.equal((await proxy.state()).server.tunnels, 1);
      client.socket.destroy();
      await gone(up);
    });

    test("bytes sent with the request and with the 101 arrive", async () => {
      const { client, upstream, up } = await openTunnel("early", `${SWITCH}hello`);
      await client.untilText("\r\n\r\nhello");
      await upstream.untilText("early");
      upstream.socket.destroy();
      await client.untilClosed();
      client.socket.destroy();
      await gone(up);
    });

    test("megabytes pass in both directions concurrently and completely with slow readers", async () => {
      const { client, upstream, up } = await openTunnel();
      const size = 4_000_000;
      client.text = "";
      client.socket.pause();
      upstream.socket.pause();
      client.socket.write(Buffer.alloc(size, "c"));
      upstream.socket.write(Buffer.alloc(size, "u"));
      await new Promise((resolve) => setTimeout(resolve, 100));
      client.socket.resume();
      upstream.socket.resume();
      await client.until(() => client.text.length === size);
      await upstream.until(() => upstream.text.length === size);
      assert.equal(client.text, "u".repeat(size));
      assert.equal(upstream.text, "c".repeat(size));
      client.socket.destroy();
      const { finished } = await proxy.until((state) => state.finished.length > 0);
      assert.equal(finished.at(-1)?.outcome, "tunnel-closed");
      assert.ok(finished.at(-1)!.bytesIn >= size);
      await gone(up);
    });

    test("a half-close of the client is forwarded and the other direction stays open", async () => {
      const { client, upstream, up } = await openTunnel();
      upstream.socket.removeAllListeners("end");
      client.socket.end("last");
      await upstream.untilText("last");
      await new Promise((resolve) => setTimeout(resolve, 30));
      upstream.socket.end("answer");
      await client.untilText("answer");
      await client.untilClosed();
      await gone(up);
    });

    test("a tunnel that is idle too long is closed on both sides", async () => {
      const { client, upstream, up } = await openTunnel();
      await client.untilClosed();
      await upstream.until(() => upstream.closed || upstream.ended);
      client.socket.destroy();
      await gone(up);
    });

    test("an upgrade that the upstream declines is an ordinary response", async () => {
      const { client, up } = await openTunnel(
        "",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno",
      );
      await client.untilText("\r\n\r\nno");
      client.socket.destroy();
      await proxy.until(({ pools }) => pools[up.port]!.open === pools[up.port]!.idle);
      await up.stop();
    });

    test("h2c is not forwarded", async () => {
      let seen = "";
      const up = await startUpstream((client) => {
        seen = client.text;
        client.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
      );
      await client.untilText("\r\n\r\nok");
      assert.doesNotMatch(seen, /upgrade|http2/i);
      client.socket.destroy();
      await up.stop();
    });
  });
}
