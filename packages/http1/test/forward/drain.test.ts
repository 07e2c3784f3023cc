// Draining a server with endless responses, on each runtime.
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";

import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import { type RawClient, openRaw, startUpstream } from "../rig/raw.ts";

const EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";
const CHUNK = "9\r\ndata: a\n\n\r\n";
const SWITCH = (protocol: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n\r\n`;
const CLOSE_TO_CLIENT = "\x88\x02\x03\xe9";
const CLOSE_TO_UPSTREAM = "\x88\x82\0\0\0\0\x03\xe9";
/** Far beyond what anything here takes: what ends before it was ended in order. */
const DRAIN_MS = 60_000;

for (const runtime of runtimes) {
  describe(`draining streams on ${runtime}`, () => {
    const stops: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const stop of stops.splice(0)) await stop();
    });

    /** A client and an upstream in the midst of an answer that began with `answer`. */
    async function begin(
      answer: string,
      request = "HTTP/1.1\r\nHost: a\r\n\r\n",
    ): Promise<{ proxy: Proxy; client: RawClient; upstream: RawClient }> {
      const proxy = await startProxy(runtime);
      const up = await startUpstream((client) => {
        if (!client.text.includes("\r\n\r\n")) return;
        client.text = "";
        client.socket.removeAllListeners("data");
        client.socket.on("data", (bytes: Buffer) => (client.text += bytes.toString("latin1")));
        client.socket.write(answer, "latin1");
      });
      stops.push(
        () => proxy.stop(),
        () => up.stop(),
      );
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ ${request}`);
      await client.untilText("\r\n\r\n");
      const body = answer.slice(answer.indexOf("\r\n\r\n") + 4);
      await client.until(
        () => body === "" || client.text.length > client.text.indexOf("\r\n\r\n") + 4,
      );
      return { proxy, client, upstream: up.connections[0]! };
    }

    async function beginTunnel(protocol: string, frames: string) {
      const request = `HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
      return begin(SWITCH(protocol) + frames, request);
    }

    test("an event stream ends with its last chunk, and the connection is closed", async () => {
      const { proxy, client, upstream } = await begin(EVENTS + CHUNKED + CHUNK);
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 20 });
      await client.untilClosed();
      assert.ok(client.text.endsWith(`${CHUNK}0\r\n\r\n`), client.text);
      client.socket.destroy();
      await upstream.untilClosed();
      await drained;
    });

    test("the current chunk is completed first", async () => {
      const { proxy, client, upstream } = await begin(`${EVENTS}${CHUNKED}${CHUNK}9\r\ndata:`);
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await assert.rejects(openSoon(proxy.port));
      assert.ok(!client.ended && client.text.endsWith("9\r\ndata:"));
      upstream.socket.write(" b\n\n\r\n9\r\nda");
      await client.untilClosed();
      assert.ok(client.text.endsWith("9\r\ndata: b\n\n\r\n0\r\n\r\n"), client.text);
      client.socket.destroy();
      await drained;
    });

    test("an event stream whose chunk never ends is destroyed", async () => {
      const { proxy, client } = await begin(`${EVENTS}${CHUNKED}9\r\ndata:`);
      const drained = proxy.send({ drainMs: 300, streamsMs: 0 });
      await client.until(() => client.closed || client.ended);
      assert.ok(client.text.endsWith("9\r\ndata:"), client.text);
      client.socket.destroy();
      await drained;
    });

    test("a close-delimited event stream ends as well, for HTTP/1.0 by closing", async () => {
      const { proxy, client } = await begin(`${EVENTS}\r\ndata: a\n\n`);
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await client.untilClosed();
      assert.ok(client.text.endsWith("9\r\ndata: a\n\n\r\n0\r\n\r\n"), client.text);
      client.socket.destroy();
      await drained;
      const old = await begin(EVENTS + CHUNKED + CHUNK, "HTTP/1.0\r\n\r\n");
      const oldDrained = old.proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await old.client.untilClosed();
      assert.ok(old.client.text.endsWith("\r\n\r\ndata: a\n\n"), old.client.text);
      old.client.socket.destroy();
      await oldDrained;
    });

    test("an event stream that starts while streams are being ended ends immediately", async () => {
      const { proxy, client, upstream } = await begin(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
      );
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await assert.rejects(openSoon(proxy.port));
      upstream.socket.write(EVENTS + CHUNKED + CHUNK);
      await client.untilClosed();
      assert.ok(client.text.endsWith(`${CHUNK}0\r\n\r\n`), client.text);
      client.socket.destroy();
      await drained;
    });

    test("any other response continues to its end, because a part of it must not look complete", async () => {
      const { proxy, client, upstream } = await begin(
        `HTTP/1.1 200 OK\r\nContent-Type: text/event-streams\r\n${CHUNKED}${CHUNK}`,
      );
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await assert.rejects(openSoon(proxy.port));
      upstream.socket.write(`${CHUNK}0\r\n\r\n`);
      await client.untilClosed();
      assert.ok(client.text.endsWith(`${CHUNK}${CHUNK}0\r\n\r\n`), client.text);
      client.socket.destroy();
      await drained;
    });

    test("a WebSocket is closed with 1001 to both sides, and the client's reply is awaited", async () => {
      const { proxy, client, upstream } = await beginTunnel("websocket", "\x81\x02hi");
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await client.until(() => client.ended);
      assert.ok(client.text.endsWith(`\x81\x02hi${CLOSE_TO_CLIENT}`), client.text);
      await upstream.until(() => upstream.ended);
      assert.equal(upstream.text, CLOSE_TO_UPSTREAM);
      client.socket.end(Buffer.from(CLOSE_TO_UPSTREAM, "latin1"));
      await drained;
      client.socket.destroy();
      await upstream.untilClosed();
    });

    test("the current frame is completed before the Close frame", async () => {
      const { proxy, client, upstream } = await beginTunnel("websocket", "\x81\x7e\x01");
      client.socket.write(Buffer.from("\x81\x85\0\0", "latin1"));
      await upstream.until(() => upstream.text.length === 4);
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await assert.rejects(openSoon(proxy.port));
      upstream.socket.write(`\0${"x".repeat(255)}`);
      upstream.socket.write("xlate");
      await client.until(() => client.ended);
      const frames = client.text.slice(client.text.indexOf("\r\n\r\n") + 4);
      assert.equal(frames, `\x81\x7e\x01\0${"x".repeat(256)}${CLOSE_TO_CLIENT}`);
      client.socket.write("\0\0hello\x81");
      await upstream.until(() => upstream.ended);
      assert.equal(upstream.text, `\x81\x85\0\0\0\0hello${CLOSE_TO_UPSTREAM}`);
      client.socket.destroy();
      await drained;
    });

    test("a side that has received a Close frame does not get another", async () => {
      const { proxy, client, upstream } = await beginTunnel("websocket", "\x88\x02\x03\xe8");
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await client.until(() => client.ended);
      assert.ok(client.text.endsWith("\r\n\r\n\x88\x02\x03\xe8"), client.text);
      await upstream.until(() => upstream.ended);
      assert.equal(upstream.text, CLOSE_TO_UPSTREAM);
      client.socket.destroy();
      await drained;
    });

    test("other tunnels continue, because they cannot be closed gracefully", async () => {
      const { proxy, client, upstream } = await beginTunnel("other", "hi");
      const drained = proxy.send({ drainMs: DRAIN_MS, streamsMs: 0 });
      await assert.rejects(openSoon(proxy.port));
      upstream.socket.write(" there");
      await client.untilText("hi there");
      client.socket.destroy();
      await drained;
    });

    /** Rejects once the proxy listens no more: then the drain has begun. */
    async function openSoon(port: number): Promise<never> {
      for (;;) {
        const probe = await openRaw(port);
        await probe.until(() => true);
        probe.socket.destroy();
      }
    }
  });
}
