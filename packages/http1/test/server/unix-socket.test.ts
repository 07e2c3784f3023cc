// Unix sockets on both sides of the engine, on each runtime.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import { RawClient } from "../rig/raw.ts";

for (const runtime of runtimes) {
  describe(`unix sockets on ${runtime}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "http1-unix-"));
    const listenPath = join(folder, "proxy.sock");
    const upstreamPath = join(folder, "upstream.sock");
    let proxy: Proxy;
    let connections = 0;
    const upstream = createServer((request, response) => {
      let size = 0;
      request.on("data", (bytes: Buffer) => (size += bytes.length));
      request.on("end", () => response.end(`${request.method} ${request.url} ${size}`));
    }).on("connection", () => connections++);

    before(async () => {
      await new Promise<void>((resolve) => {
        upstream.listen(upstreamPath, resolve);
      });
      proxy = await startProxy(runtime, { listenPath, upstreamPath });
    });
    after(async () => {
      await proxy.stop();
      upstream.closeAllConnections();
      upstream.close();
      rmSync(folder, { recursive: true });
    });

    async function ask(request: string): Promise<string> {
      const client = new RawClient(connect({ path: listenPath }));
      client.socket.write(request);
      await client.untilClosed();
      client.socket.destroy();
      return client.text;
    }

    test("requests pass through Unix sockets, and the upstream's connection is reused", async () => {
      const get = await ask("GET /unix/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      assert.match(get, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nGET \/a 0$/);
      const body = "x".repeat(200_000);
      const post = await ask(
        `POST /unix/b HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
      assert.match(post, /\r\n\r\nPOST \/b 200000$/);
      assert.equal(connections, 1);
    });

    test("a socket in use is not replaced", async () => {
      await assert.rejects(startProxy(runtime, { listenPath }), /ended with/);
      assert.match(
        await ask("GET /here HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        /in place/,
      );
    });

    test("a missing socket of an upstream is a 502", async () => {
      const lonely = join(folder, "lonely.sock");
      const other = await startProxy(runtime, { listenPath: lonely, upstreamPath: "/nowhere/x" });
      const client = new RawClient(connect({ path: lonely }));
      client.socket.write("GET /unix/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      await client.untilClosed();
      assert.match(client.text, /^HTTP\/1\.1 502 [^]*"code":"upstream_unreachable"/);
      assert.ok(existsSync(lonely));
      await other.stop();
    });
  });
}
