// Black-box tests of forwarding in bytes, on each runtime.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import {
  type RawClient,
  type RawUpstream,
  answering,
  ask,
  openRaw,
  startUpstream,
} from "../rig/raw.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

for (const runtime of runtimes) {
  describe(`forwarding on ${runtime}`, () => {
    let proxy: Proxy;
    const upstreams: RawUpstream[] = [];

    before(async () => {
      proxy = await startProxy(runtime, {
        limits: { bodyBytesMax: 1_000_000 },
        timeouts: { halfCloseMs: 300, lingerMs: 300 },
        // So long that a busy machine does not run into them with answers that are not late.
        plan: { timeouts: { responseHeadMs: 1_000, bodyIdleMs: 1_000 } },
      });
    });
    after(async () => {
      await proxy.stop();
      for (const upstream of upstreams) await upstream.stop();
    });

    async function upstream(
      onRequest: (client: RawClient, count: number) => void,
    ): Promise<RawUpstream> {
      const started = await startUpstream(onRequest);
      upstreams.push(started);
      return started;
    }

    async function proxied(
      answer: string | Buffer,
      request = "GET /u/PORT/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ): Promise<string> {
      const { port } = await upstream(answering(answer));
      return ask(proxy.port, request.replace("PORT", String(port)));
    }

    async function idle(): Promise<void> {
      await proxy.until(({ server, pools }) => {
        const lent = Object.values(pools).every(
          (pool) => pool.open === pool.idle && pool.waiting === 0,
        );
        // The connection that asks is the one that is left.
        return server.connections === 1 && server.active === 1 && lent;
      });
    }

    test("a request reaches the upstream with its path, its fields and added fields", async () => {
      let seen = "";
      const { port } = await upstream((client) => {
        if (!client.text.includes("\r\n\r\n")) return;
        seen = client.text;
        client.socket.write(OK);
      });
      await ask(
        proxy.port,
        `GET /u/${port}/a%20b?q=1 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nX-Odd:  two  \r\nConnection: close, x-gone\r\nX-Gone: 1\r\nKeep-Alive: 3\r\nTE: trailers, gzip\r\nProxy-Authorization: secret\r\nUpgrade: h2c\r\n\r\n`,
      );
      assert.equal(
        seen,
        "GET /a%20b?q=1 HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nX-Odd:  two  \r\nTE: trailers\r\nConnection: TE\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
      );
    });

    test("a query is replaced or removed before the request is forwarded", async () => {
      for (const [query, line] of [
        ["&only=1", "GET /replace-query?only=1 HTTP/1.1"],
        ["", "GET /replace-query HTTP/1.1"],
      ] as const) {
        let seen = "";
        const { port } = await upstream((client) => {
          if (!client.text.includes("\r\n\r\n")) return;
          seen = client.text;
          client.socket.write(OK);
        });
        await ask(
          proxy.port,
          `GET /replace-query?${port}${query} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
        );
        assert.equal(seen.split("\r\n")[0], line);
      }
    });

    test("a response is returned without hop-by-hop fields, with Date and added fields", async () => {
      const answer = await proxied(
        "HTTP/1.1 201 Made Up\r\nContent-Length: 2\r\nConnection: x-gone\r\nX-Gone: 1\r\nKeep-Alive: 5\r\nX-Kept: 1\r\n\r\nok",
      );
      assert.match(
        answer,
        /^HTTP\/1\.1 201 Made Up\r\nContent-Length: 2\r\nX-Kept: 1\r\nDate: [^\r]+\r\nX-Seen: 1 201\r\nConnection: close\r\n\r\nok$/,
      );
    });

    test("connections to the upstream are reused", async () => {
      const up = await upstream(answering(OK));
      const client = await openRaw(proxy.port);
      for (let count = 1; count <= 5; count++) {
        client.text = "";
        client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
        await client.untilText("\r\n\r\nok");
      }
      client.socket.destroy();
      assert.equal(up.connections.length, 1);
      await idle();
    });

    test("pipelined requests are answered in order", async () => {
      const { port } = await upstream((client) => {
        while (client.text.includes("\r\n\r\n")) {
          const path = /GET (\S+)/.exec(client.text)![1]!;
          client.text = client.text.slice(client.text.indexOf("\r\n\r\n") + 4);
          setTimeout(
            () =>
              client.socket.write(
                `HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`,
              ),
            path === "/1" ? 30 : 0,
          );
        }
      });
      const requests = [1, 2, 3, 4].map((n) => `GET /u/${port}/${n} HTTP/1.1\r\nHost: a\r\n`);
      const answer = await ask(proxy.port, `${requests.join("\r\n")}Connection: close\r\n\r\n`);
      assert.deepEqual(answer.match(/(?<=\r\n\r\n)\/\d/g), ["/1", "/2", "/3", "/4"]);
    });

    const framings: [name: string, upstreamSends: string, request: string, expected: RegExp][] = [
      [
        "chunked stays chunked for 1.1",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
        "1.1",
        /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n$/,
      ],
      [
        "chunked is taken off for 1.0",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        "1.0",
        /Connection: close\r\n\r\nabcde$/,
      ],
      [
        "no length for 204, be it 0",
        "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nA: b\r\n\r\n",
        "1.1",
        /^HTTP\/1.1 204 No Content\r\nA: b\r\n(?![^]*Content-Length)[^]*\r\n\r\n$/,
      ],
      [
        "what 426 asks to be switched to",
        "HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
        "1.1",
        /^HTTP\/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 0\r\nConnection: Upgrade\r\n/,
      ],
      [
        "no content for 204",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "1.1",
        /^HTTP\/1.1 204 No Content\r\n[^]*\r\n\r\n$/,
      ],
      [
        "no content for 304, its length is kept",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
        "1.1",
        /Content-Length: 7\r\n[^]*\r\n\r\n$/,
      ],
      [
        "empty content",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "1.1",
        /Content-Length: 0\r\n[^]*\r\n\r\n$/,
      ],
      [
        "an HTTP/1.0 upstream with a length",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "1.1",
        /^HTTP\/1\.1 200 OK[^]*\r\n\r\nok$/,
      ],
    ];
    for (const [name, sends, version, expected] of framings) {
      test(`framing: ${name}`, async () => {
        const answer = await proxied(
          sends,
          `GET /u/PORT/ HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`,
        );
        assert.match(answer, expected);
        await idle();
      });
    }

    for (const framing of ["Content-Length: 100", "Transfer-Encoding: chunked"]) {
      test(`an incomplete body before the upstream is connected frees both sides: ${framing}`, async () => {
        const up = await upstream(() => {});
        const piece = framing.startsWith("Transfer") ? "4\r\nhalf\r\n" : "half";
        const client = await openRaw(proxy.port);
        client.socket.end(`POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${piece}`);
        await client.untilClosed();
        assert.equal(client.text, "");
        await idle();
      });
    }

    test("framing: close-delimited content is chunked for 1.1 and passes as it is for 1.0", async () => {
      const up = await upstream((client) => {
        client.socket.write("HTTP/1.1 200 OK\r\n\r\nabc");
        setTimeout(() => client.socket.end("def"), 20);
      });
      const modern = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(
        modern,
        /Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n$/,
      );
      const old = await ask(proxy.port, `GET /u/${up.port}/ HTTP/1.0\r\n\r\n`);
      assert.match(old, /Connection: close\r\n\r\nabcdef$/);
      await idle();
    });

    test("a response to HEAD has only the head and the connections are reused", async () => {
      const up = await upstream(answering("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"));
      const client = await openRaw(proxy.port);
      for (let count = 0; count < 2; count++) {
        client.text = "";
        client.socket.write(`HEAD /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
        await client.untilText("Content-Length: 500");
      }
      assert.equal(up.connections.length, 1);
      client.socket.destroy();
    });

    test("an HTTP/1.0 client can request keep-alive if the length is known", async () => {
      const up = await upstream(answering(OK));
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`);
      await client.untilText("\r\n\r\nok");
      assert.match(client.text, /Connection: keep-alive/);
      client.text = "";
      client.socket.write(`GET /u/${up.port}/ HTTP/1.0\r\n\r\n`);
      await client.untilClosed();
      assert.match(client.text, /Connection: close\r\n\r\nok$/);
    });

    test("a body with a length is sent together with its head", async () => {
      const pieces: string[] = [];
      const up = await upstream((client) => {
        pieces.push(client.text);
        client.text = "";
        client.socket.write(OK);
      });
      await ask(
        proxy.port,
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`,
      );
      assert.equal(pieces.length, 1);
      assert.match(pieces[0]!, /Content-Length: 5\r\n[^]*\r\n\r\nhello$/);
    });

    test("a chunked body passes with its trailers, however it is split", async () => {
      let seen = "";
      const up = await upstream((client) => {
        seen = client.text;
        if (seen.endsWith("0\r\nX-T: v\r\n\r\n")) client.socket.write(OK);
      });
      const client = await openRaw(proxy.port);
      const body = "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-T: v\r\n\r\n";
      client.socket.write(
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      );
      for (const byte of body) {
        client.socket.write(byte);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await client.untilText("\r\n\r\nok");
      assert.ok(seen.endsWith(`\r\n\r\n${body}`), seen);
      await idle();
    });

    const framingFields: [name: string, sent: string, body: string, expected: string][] = [
      [
        "Transfer-Encoding",
        "tRANSFER-eNCODING:\t CHUNKED\t",
        "2\r\nab\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked",
      ],
      ["Content-Length", "CONTENT-length:\t2 \t", "ab", "Content-Length: 2"],
    ];
    for (const [name, sent, body, expected] of framingFields) {
      test(`${name} is forwarded in canonical form, however it was spelled`, async () => {
        let seen = "";
        const { port } = await upstream((client) => {
          if (!client.text.endsWith(body)) return;
          seen = client.text;
          client.socket.write(OK);
        });
        await ask(
          proxy.port,
          `POST /u/${port}/ HTTP/1.1\r\nHost: a\r\n${sent}\r\nX-Kept: 1\r\nConnection: close\r\n\r\n${body}`,
        );
        assert.equal(
          seen,
          `POST / HTTP/1.1\r\nHost: a\r\nX-Kept: 1\r\n${expected}\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n${body}`,
        );
      });
    }

    test("an odd spelling of Transfer-Encoding is returned in canonical form", async () => {
      const answer = await proxied(
        "HTTP/1.1 200 OK\r\ntransfer-ENCODING:\t CHUNKED\t\r\nX-Kept: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      );
      assert.match(
        answer,
        /^HTTP\/1\.1 200 OK\r\nX-Kept: 1\r\nTransfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n0\r\n\r\n$/,
      );
    });

    test("large bodies pass whole in both directions, with back-pressure", async () => {
      const size = 8_000_000;
      const content = Buffer.alloc(size, "0123456789abcdef");
      let received = 0;
      const up = await upstream((client) => {
        const bodyAt = client.text.indexOf("\r\n\r\n");
        if (bodyAt === -1) return;
        received = client.text.length - bodyAt - 4;
        if (received < 900_000) return;
        client.text = "";
        client.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
        client.socket.write(content);
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n`,
      );
      client.socket.write(Buffer.alloc(900_000, "x"));
      await client.untilText("\r\n\r\n");
      client.socket.pause();
      await new Promise((resolve) => setTimeout(resolve, 100));
      client.socket.resume();
      const head = client.text.indexOf("\r\n\r\n") + 4;
      await client.until(() => client.text.length - head >= size);
      assert.equal(received, 900_000);
      assert.equal(client.text.length - head, size);
      assert.ok(Buffer.from(client.text.slice(head), "latin1").equals(content));
      client.socket.destroy();
      await idle();
    });

    test("two slow clients of large answers do not see each other's bytes", async () => {
      const size = 3_000_000;
      const up = await upstream((client) => {
        const mark = /GET \/(\w)/.exec(client.text)?.[1];
        if (mark === undefined) return;
        client.text = "";
        client.socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
        client.socket.write(Buffer.alloc(size, mark));
      });
      const clients = await Promise.all(
        ["a", "b", "c", "d"].map(async (mark) => {
          const client = await openRaw(proxy.port);
          client.socket.write(`GET /u/${up.port}/${mark} HTTP/1.1\r\nHost: a\r\n\r\n`);
          await client.untilText("\r\n\r\n");
          client.socket.pause();
          setTimeout(() => client.socket.resume(), 30 + Math.random() * 50);
          return { client, mark };
        }),
      );
      for (const { client, mark } of clients) {
        const head = client.text.indexOf("\r\n\r\n") + 4;
        await client.until(() => client.text.length - head >= size);
        assert.equal(client.text.slice(head), mark.repeat(size));
        client.socket.destroy();
      }
      await idle();
    });

    test("streams are not buffered", async () => {
      let send: (text: string) => void = () => {};
      const up = await upstream((client) => {
        send = (text) => client.socket.write(text);
        send(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
      });
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("\r\n\r\n");
      for (let event = 1; event <= 3; event++) {
        send(`9\r\ndata: ${event}\n\n\r\n`);
        await client.untilText(`9\r\ndata: ${event}\n\n\r\n`);
      }
      client.socket.destroy();
      await idle();
    });

    test("informational responses are forwarded before the final one", async () => {
      const answer = await proxied(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      );
      assert.match(
        answer,
        /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 103 Early Hints\r\nLink: <\/a>\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
      );
    });

    test("Expect: 100-continue goes to the upstream, its 100 to the client, then the body passes", async () => {
      const up = await upstream((client) => {
        if (client.text.endsWith("body")) client.socket.write(OK);
        else client.socket.write("HTTP/1.1 100 Continue\r\n\r\n");
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`,
      );
      await client.untilText("100 Continue\r\n\r\n");
      client.socket.write("body");
      await client.untilText("\r\n\r\nok");
      assert.doesNotMatch(client.text, /Connection: close/);
      client.socket.destroy();
    });

    test("an early response of the upstream is forwarded, and the rest of the body is not sent", async () => {
      const up = await upstream((client) => {
        if (client.text.includes("\r\n\r\n"))
          client.socket.write("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\nsome`,
      );
      await client.untilText("\r\n\r\nbig");
      assert.match(client.text, /^HTTP\/1\.1 413 Too Large\r\n[^]*Connection: close/);
      client.socket.destroy();
      await proxy.until(({ pools }) => pools[up.port]?.open === 0);
      await idle();
    });

    test("a body beyond the limit gets 413, declared or not, and never reaches the upstream whole", async () => {
      const up = await upstream(() => {});
      const declared = await ask(
        proxy.port,
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000001\r\n\r\n`,
      );
      assert.match(declared, /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/);
      assert.ok(up.connections.every((connection) => connection.text === ""));
      const chunk = `80000\r\n${"x".repeat(0x80000)}\r\n`;
      const streamed = await ask(
        proxy.port,
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`,
      );
      assert.match(streamed, /^HTTP\/1\.1 413 /);
      await idle();
    });

    test("a malformed chunk gets 400, and the upstream's connection is closed", async () => {
      const up = await upstream(() => {});
      const client = await openRaw(proxy.port);
      client.socket.write(
        `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`,
      );
      await new Promise((resolve) => setTimeout(resolve, 50));
      client.socket.write("zz\r\n");
      await client.untilClosed();
      assert.match(client.text, /^HTTP\/1\.1 400 [^]*bad_chunk_size/);
      await proxy.until(({ pools }) => pools[up.port]?.open === 0);
    });

    const garbage: [name: string, bytes: string][] = [
      ["no HTTP at all", "SSH-2.0-OpenSSH_9\r\n"],
      ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
      [
        "length and chunked",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
      ],
      ["a bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
      ["HTTP/2", "HTTP/2 200\r\n\r\n"],
      [
        "an unsolicited 101",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
      ],
      ["informational answers without end", "HTTP/1.1 103 Hint\r\n\r\n".repeat(40)],
    ];
    for (const [name, bytes] of garbage) {
      test(`an upstream that sends ${name} is a 502 and its connection is closed`, async () => {
        const up = await upstream((client) => client.socket.write(bytes));
        const answer = await ask(
          proxy.port,
          `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
        );
        assert.match(answer, /HTTP\/1\.1 502 [^]*"code":"upstream_invalid_response"/);
        await proxy.until(({ pools }) => pools[up.port]?.open === 0);
        await idle();
      });
    }

    test("an upstream connection with surplus bytes is not reused, and the surplus is discarded", async () => {
      const up = await upstream(
        answering(
          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        ),
      );
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("\r\n\r\nok");
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.doesNotMatch(client.text, /evil/);
      client.text = "";
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("\r\n\r\nok");
      assert.equal(up.connections.length, 2);
      client.socket.destroy();
    });

    test("unsolicited bytes on an idle connection close it", async () => {
      const up = await upstream((client, count) => {
        client.socket.write(OK);
        if (count === 1)
          setTimeout(
            () => client.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
            20,
          );
      });
      await ask(proxy.port, `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      await proxy.until(({ pools }) => pools[up.port]?.open === 0);
      const answer = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /\r\n\r\nok$/);
    });

    const truncated: [name: string, bytes: string][] = [
      ["too little content", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"],
      ["an unfinished chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf"],
      ["no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ];
    for (const [name, bytes] of truncated) {
      test(`an upstream that closes after ${name} leaves the client without a complete answer`, async () => {
        const up = await upstream((client) => client.socket.end(bytes));
        const client = await openRaw(proxy.port);
        client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
        await client.untilClosed();
        assert.doesNotMatch(client.text, /0\r\n\r\n$/);
        const state = await proxy.until(({ finished }) => finished.length > 0);
        assert.equal(state.finished.at(-1)?.outcome, "truncated");
        await idle();
      });
    }

    test("garbage in the middle of a chunked answer destroys the client's connection", async () => {
      const up = await upstream((client) =>
        client.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
      );
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("half");
      up.connections[0]!.socket.write("zz");
      await client.untilClosed();
      assert.doesNotMatch(client.text, /zz|0\r\n\r\n$/);
      await idle();
    });

    test("garbage among the first chunks, which came with the head, is a 502", async () => {
      const answer = await proxied(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz",
      );
      assert.match(answer, /^HTTP\/1\.1 502 [^]*"code":"upstream_invalid_response"/);
      await idle();
    });

    test("an upstream that closes without a response is a 502", async () => {
      const up = await upstream((client) => client.socket.end());
      const answer = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 502 /);
      const { finished } = await proxy.until((state) => state.finished.length > 0);
      assert.deepEqual(finished.at(-1)?.failures, ["reset"]);
      await idle();
    });

    test("an upstream that resets in the middle of its head is a 502", async () => {
      const up = await upstream((client) => {
        client.socket.write("HTTP/1.1 200 OK\r\nContent-");
        setTimeout(() => client.socket.resetAndDestroy(), 20);
      });
      const answer = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 502 /);
    });

    test("a silent upstream is a 504", async () => {
      const up = await upstream(() => {});
      const answer = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 504 [^]*"code":"upstream_timeout"/);
      await proxy.until(({ pools }) => pools[up.port]?.open === 0);
    });

    test("a response that stalls is cut off", async () => {
      const up = await upstream((client) =>
        client.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
      );
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilClosed();
      assert.match(client.text, /half$/);
      await idle();
    });

    test("a refused connection is a 502", async () => {
      const up = await startUpstream(() => {});
      await up.stop();
      const answer = await ask(
        proxy.port,
        `GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 502 [^]*"code":"upstream_unreachable"/);
      const { finished } = await proxy.until((state) => state.finished.length > 0);
      assert.deepEqual(finished.at(-1)?.failures, ["connect-refused ECONNREFUSED"]);
    });

    for (const [name, leave] of [
      ["closes", (client: RawClient) => client.socket.destroy()],
      ["resets", (client: RawClient) => client.socket.resetAndDestroy()],
    ] as const) {
      test(`a client that ${name} while it waits frees the upstream's connection`, async () => {
        let arrived = false;
        const up = await upstream(() => (arrived = true));
        const client = await openRaw(proxy.port);
        client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
        await client.until(() => arrived);
        leave(client);
        await proxy.until(({ pools }) => pools[up.port]?.open === 0);
        await idle();
      });

      test(`a client that ${name} in the middle of its body frees the upstream's connection`, async () => {
        let arrived = false;
        const up = await upstream(() => (arrived = true));
        const client = await openRaw(proxy.port);
        client.socket.write(
          `POST /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome`,
        );
        await client.until(() => arrived);
        leave(client);
        await proxy.until(({ pools }) => pools[up.port]?.open === 0);
        await idle();
      });

      test(`a client that ${name} in the middle of an answer frees the upstream's connection`, async () => {
        const up = await upstream((upstreamSide) => {
          upstreamSide.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
          upstreamSide.socket.write(Buffer.alloc(5_000_000));
        });
        const client = await openRaw(proxy.port);
        client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
        await client.untilText("\r\n\r\n");
        leave(client);
        await proxy.until(({ pools }) => pools[up.port]?.open === 0);
        await idle();
      });
    }

    test("a client that half-closes after its request still gets the answer", async () => {
      const up = await upstream((client) => {
        setTimeout(() => client.socket.write(OK), 50);
      });
      const client = await openRaw(proxy.port);
      client.socket.end(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilClosed();
      assert.match(client.text, /\r\n\r\nok$/);
      await idle();
    });

    test("an observer that throws causes a 500, and no connection stays open", async () => {
      const up = await upstream(answering(OK));
      const bad = await ask(
        proxy.port,
        `GET /u/${up.port}/bad-field HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(bad, /^HTTP\/1\.1 500 /);
      assert.ok(up.connections.every(({ text }) => text === ""));
      const late = await proxied("HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok");
      assert.doesNotMatch(late, /ok$/);
      assert.equal((await proxy.state()).errors.length, 2);
      await idle();
    });

    test("every request reports its end exactly once", async () => {
      const up = await upstream((client) => {
        if (client.text.includes("GET /hang")) return;
        if (client.text.includes("GET /odd")) {
          client.socket.write("HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok");
        } else if (client.text.includes("\r\n\r\n")) client.socket.write(OK);
      });
      await proxy.state();
      const send = (path: string): Promise<string> =>
        ask(proxy.port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      await send("/who");
      await send(`/u/${up.port}/ok`);
      await send("/u/1/refused");
      await send(`/u/${up.port}/bad-field`);
      await send(`/u/${up.port}/odd`);
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/hang HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.until(() => up.connections.some(({ text }) => text.includes("/hang")));
      client.socket.destroy();
      const ends: string[] = [];
      await proxy.until((state) => {
        ends.push(...state.ends);
        return ends.length >= 6;
      });
      await idle();
      ends.push(...(await proxy.state()).ends);
      assert.deepEqual(ends, [
        "/who complete 200",
        "/ok complete 200",
        "/refused failed 502",
        "/bad-field complete 500",
        "/odd client-aborted 299",
        "/hang client-aborted 0",
      ]);
    });

    test("a body that the handler has read is forwarded with its length, on the path it names", async () => {
      let seen = "";
      const up = await upstream((client) => {
        seen = client.text;
        client.socket.write(OK);
      });
      const answer = await ask(
        proxy.port,
        `POST /read-then-forward?${up.port} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`,
      );
      assert.match(answer, /\r\n\r\nok$/);
      assert.match(
        seen,
        /^POST \/collected\?\d+ HTTP\/1\.1\r\nHost: a\r\nContent-Length: 5\r\nX-Forwarded-For: 127\.0\.0\.1\r\n\r\nabcde$/,
      );
    });
  });

  describe(`retries on ${runtime}`, () => {
    let proxy: Proxy;
    before(async () => {
      proxy = await startProxy(runtime, { retry: true });
    });
    after(() => proxy.stop());

    test("a request that was lost on an idle connection is sent again on a new one, including its body", async () => {
      const up = await startUpstream((client, count) => {
        if (!client.text.endsWith("hello")) return;
        client.text = "";
        // The second request of the first connection is lost like on a keep-alive race.
        if (count === 1 && !client.ended && client.socket.bytesWritten > 0) client.socket.destroy();
        else client.socket.write(OK);
      });
      const request = `PUT /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`;
      const client = await openRaw(proxy.port);
      client.socket.write(request);
      await client.untilText("\r\n\r\nok");
      client.text = "";
      client.socket.write(request);
      await client.untilText("\r\n\r\nok");
      assert.match(client.text, /^HTTP\/1\.1 200 OK/);
      assert.equal(up.connections.length, 2);
      const { finished } = await proxy.state();
      assert.deepEqual(
        finished.at(-1)?.failures.map((failure) => failure.split(" ")[0]),
        ["reset-on-idle"],
      );
      client.socket.destroy();
      await up.stop();
    });

    test("a body beyond the buffer is not sent again", async () => {
      const up = await startUpstream((client) => {
        if (client.text.length > 200_000) client.socket.destroy();
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `PUT /u/${up.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n${"x".repeat(300_000)}`,
      );
      await client.untilText("HTTP/1.1 502");
      assert.equal(up.connections.length, 1);
      client.socket.destroy();
      await up.stop();
    });
  });
}
