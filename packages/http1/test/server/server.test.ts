// Black-box tests of the server: responses, limits, slow clients, drain, on each runtime.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import { type RawClient, ask, openRaw, startUpstream } from "../rig/raw.ts";

const CLOSE = "Host: a\r\nConnection: close\r\n\r\n";

for (const runtime of runtimes) {
  describe(`the server on ${runtime}`, () => {
    let proxy: Proxy;
    /** Only for tests of slow clients: all others would be slow clients of it on a busy machine. */
    let impatient: Proxy;
    before(async () => {
      impatient = await startProxy(runtime, {
        timeouts: {
          headMs: 1_500,
          keepAliveMs: 1_500,
          bodyIdleMs: 1_000,
          writeStallMs: 1_000,
        },
      });
      proxy = await startProxy(runtime, {
        limits: {
          headBytesMax: 4_096,
          fieldsMax: 20,
          targetBytesMax: 1_000,
          connectionsMax: 30,
          connectionsPerAddressMax: 30,
        },
        timeouts: { lingerMs: 2_000 },
      });
    });
    after(() => Promise.all([proxy.stop(), impatient.stop()]));

    test("a response of a handler has a length and a date, and the connection stays open", async () => {
      const client = await openRaw(proxy.port);
      client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.untilText("in place 1");
      assert.match(
        client.text,
        /^HTTP\/1\.1 200 OK\r\nContent-Length: 10\r\nDate: [^\r]+\r\n\r\nin place 1$/,
      );
      client.socket.write("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.untilText("in place 3");
      assert.doesNotMatch(client.text, /in place 2/);
      client.socket.destroy();
    });

    test("responses of all lengths arrive complete and in order at a client that reads late", async () => {
      const client = await openRaw(proxy.port);
      client.socket.pause();
      const lengths = [32_768, 32_769, 5_000_000, 70_000, 1];
      const requests = lengths.map((length) => `GET /long?${length} HTTP/1.1\r\nHost: a\r\n\r\n`);
      client.socket.write(`HEAD /long?40000 HTTP/1.1\r\nHost: a\r\n\r\n${requests.join("")}`);
      await sleep(50);
      client.socket.resume();
      const total = lengths.reduce((sum, length) => sum + length, 0);
      await client.until(() => client.text.endsWith("\r\n\r\nx"), "the last answer");
      assert.equal(client.text.match(/x/g)?.length, total);
      const heads = [...client.text.matchAll(/Content-Length: (\d+)\r\n[^x]*?\r\n\r\n(x*)/g)];
      assert.deepEqual(
        heads.map(([, length, content]) => [Number(length), content!.length]),
        [[40_000, 0], ...lengths.map((length) => [length, length])],
      );
      client.socket.destroy();
    });

    test("a taken socket emits what arrives afterwards as data", async () => {
      const client = await openRaw(proxy.port);
      const upgrade = "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n";
      client.socket.write(`GET /take HTTP/1.1\r\nHost: a\r\n${upgrade}first`);
      await client.untilText("first");
      assert.match(client.text, /^HTTP\/1\.1 101 /);
      client.socket.write("second");
      await client.untilText("firstsecond");
      const large = "x".repeat(1_000_000);
      client.socket.write(large);
      await client.until(() => client.text.endsWith(large), "the large message");
      client.socket.destroy();
    });

    test("a streamed answer is chunked with trailers, and close-delimited for 1.0", async () => {
      const modern = await ask(proxy.port, `GET /stream HTTP/1.1\r\n${CLOSE}`);
      assert.match(
        modern,
        /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n3\r\none\r\nea60\r\n(two)+\r\n0\r\nX-Sum: 3\r\n\r\n$/,
      );
      const old = await ask(proxy.port, "GET /stream HTTP/1.0\r\n\r\n");
      assert.match(old, /Connection: close\r\n\r\none(two){20000}$/);
    });

    test("a streamed response shorter than its length destroys the connection", async () => {
      const client = await openRaw(proxy.port);
      client.socket.write("GET /short HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.untilClosed();
      assert.match(client.text, /Content-Length: 10/);
    });

    test("refusals are problem documents with a code of the platform's list and the reason", async () => {
      const answer = await ask(proxy.port, "GET / HTTP/1.1\r\n\r\n");
      const problem = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as object;
      assert.deepEqual(problem, {
        reason: "host_missing",
        type: "urn:platform:error:bad_request",
        title: "Bad request",
        status: 400,
        detail: "The Host header field is missing.",
        instance: "",
        code: "bad_request",
        error: "The Host header field is missing.",
        trace_id: "",
      });
    });

    test("a handler that throws causes a 500, and the next connection works", async () => {
      assert.match(
        await ask(proxy.port, `GET /throw HTTP/1.1\r\n${CLOSE}`),
        /^HTTP\/1\.1 500 [^]*"code":"internal"/,
      );
      assert.match(await ask(proxy.port, `GET / HTTP/1.1\r\n${CLOSE}`), /in place/);
      assert.deepEqual((await proxy.state()).errors, ["Error: thrown by the handler"]);
    });

    test("a socket taken with an invalid field is not switched: 500, and the connection closes", async () => {
      const answer = await ask(proxy.port, `GET /take-badly HTTP/1.1\r\n${CLOSE}`);
      assert.match(answer, /^HTTP\/1\.1 500 /);
    });

    test("a body is collected with a length or chunked, byte by byte, with 100 (Continue) if the client waits for it", async () => {
      const client = await openRaw(proxy.port);
      client.socket.write(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
      );
      await client.untilText("HTTP/1.1 100 Continue\r\n\r\n");
      client.socket.write("hello");
      await client.untilText("\r\n\r\nhello");
      client.text = "";
      for (const byte of "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n") {
        client.socket.write(byte);
      }
      await client.untilText("\r\n\r\nabcde");
      client.socket.destroy();
    });

    test("an early response reaches a client that continues sending, then the connection closes", async () => {
      const client = await openRaw(proxy.port);
      client.socket.write("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n");
      client.socket.write(Buffer.alloc(1_000_000));
      await client.untilText("\r\n\r\nno");
      assert.match(client.text, /^HTTP\/1\.1 403 [^]*Connection: close/);
      await client.until(() => client.closed || client.ended);
      client.socket.destroy();
    });

    test("a small rest of a body is discarded and the connection is reused", async () => {
      const client = await openRaw(proxy.port);
      client.socket.write("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
      await client.untilText("\r\n\r\nno");
      assert.doesNotMatch(client.text, /Connection: close/);
      client.socket.write(`${"x".repeat(1_000)}GET / HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("in place 2");
      client.socket.destroy();
    });

    const refusals: [name: string, request: string, status: number][] = [
      [
        "a head that is too large",
        `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(5_000)}\r\n\r\n`,
        431,
      ],
      ["too many fields", `GET / HTTP/1.1\r\nHost: a\r\n${"X: 1\r\n".repeat(30)}\r\n`, 431],
      ["a target that is too long", `GET /${"x".repeat(2_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
      ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
      [
        "two lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        400,
      ],
      [
        "length and chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
      ],
      ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
      ["CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501],
      ["TLS bytes", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
    ];
    for (const [name, request, status] of refusals) {
      test(`${name} gets ${status} and a closed connection`, async () => {
        const client = await openRaw(proxy.port);
        client.socket.write(Buffer.from(request, "latin1"));
        await client.untilClosed();
        assert.match(
          client.text,
          new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json[^]*Connection: close`),
        );
        client.socket.destroy();
      });
    }

    test("a head that never ends is a 408", async () => {
      const client = await openRaw(impatient.port);
      const drip = setInterval(() => client.socket.write("X: y\r\n"), 20);
      client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n");
      await client.untilClosed();
      clearInterval(drip);
      assert.match(client.text, /^HTTP\/1\.1 408 /);
      client.socket.destroy();
    });

    test("silent connections and those that are idle too long are closed without a response", async () => {
      const silent = await openRaw(impatient.port);
      const idle = await openRaw(impatient.port);
      idle.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await idle.untilText("in place 1");
      await silent.untilClosed();
      await idle.untilClosed();
      assert.equal(silent.text, "");
      assert.match(idle.text, /in place 1$/);
      silent.socket.destroy();
      idle.socket.destroy();
    });

    test("a body that stalls is a 408", async () => {
      const client = await openRaw(impatient.port);
      client.socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
      await client.untilClosed();
      assert.match(client.text, /^HTTP\/1\.1 408 /);
      client.socket.destroy();
    });

    test("a client that does not read its response is disconnected", async (t) => {
      let hasRequest = false;
      const up = await startUpstream((client) => {
        hasRequest = true;
        client.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n");
        client.socket.write(Buffer.alloc(50_000_000));
      });
      t.after(() => up.stop());
      const client = await openRaw(impatient.port);
      client.socket.pause();
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      // The pool of an upstream without connections is removed after a while.
      await impatient.until(({ pools }) => hasRequest && (pools[up.port]?.open ?? 0) === 0);
      client.socket.destroy();
    });

    test("read-ahead is limited while a response is pending, and all requests are answered", async () => {
      const client = await openRaw(proxy.port);
      const count = 3_000;
      client.socket.write("GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
      client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count));
      await client.untilText(`in place ${count + 1}`);
      assert.equal(client.text.match(/HTTP\/1\.1 200/g)?.length, count + 1);
      client.socket.destroy();
    });

    test("connections beyond the maximum are closed immediately", async () => {
      // Connections of other tests may still be counted: only who was answered is in.
      const openAnswered = async (): Promise<RawClient> => {
        for (;;) {
          const client = await openRaw(proxy.port);
          client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
          await client.until(() => client.closed || client.ended || client.text !== "");
          if (client.text !== "") return client;
          client.socket.destroy();
        }
      };
      const clients = await Promise.all(Array.from({ length: 30 }, openAnswered));
      const extra = await openRaw(proxy.port);
      await extra.untilClosed();
      assert.equal(extra.text, "");
      extra.socket.destroy();
      clients[0]!.socket.write(`GET /state HTTP/1.1\r\n${CLOSE}`);
      await clients[0]!.untilText("too-many-connections");
      for (const { socket } of clients) socket.destroy();
    });
  });

  test(`refusals on ${runtime} can have the server's own error format`, async () => {
    const proxy = await startProxy(runtime, { refusals: "text" });
    try {
      const answers: [request: string, answer: RegExp][] = [
        [
          "GET /%zz?q HTTP/1.1\r\nHost: a\r\n\r\n",
          /400 [^]*X-Code: bad_percent\r[^]*refused \/%zz$/,
        ],
        ["GET /a HTTP/1.1\r\n\r\n", /400 [^]*X-Code: host_missing\r[^]*refused \/a$/],
        ["GET /a\x01b HTTP/1.1\r\n\r\n", /400 [^]*X-Code: bad_target\r[^]*refused $/],
        ["G@T /a HTTP/1.1\r\n\r\n", /400 [^]*X-Code: bad_request_line\r[^]*refused $/],
        ["CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", /400 [^]*X-Code: not_implemented\r/],
        [
          "GET /throw HTTP/1.1\r\nHost: a\r\n\r\n",
          /503 [^]*X-Code: internal\r[^]*refused \/throw$/,
        ],
        ["HEAD /%zz HTTP/1.1\r\nHost: a\r\n\r\n", /400 [^]*Content-Length: 12\r[^]*\r\n\r\n$/],
      ];
      for (const [request, answer] of answers) assert.match(await ask(proxy.port, request), answer);
    } finally {
      await proxy.stop();
    }
  });

  for (const refusals of ["null", "throws", "bad-field", "too-large"] as const) {
    test(`refusals on ${runtime} are problem documents if the server's own format is ${refusals}`, async () => {
      const proxy = await startProxy(runtime, { refusals });
      try {
        const answer = await ask(proxy.port, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
        assert.match(answer, /^HTTP\/1\.1 400 [^]*"reason":"bad_percent"[^]*}$/);
      } finally {
        await proxy.stop();
      }
    });
  }

  test(`drain on ${runtime} lets requests finish, closes idle connections and refuses new ones`, async () => {
    const proxy = await startProxy(runtime);
    try {
      const idle = await openRaw(proxy.port);
      idle.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await idle.untilText("in place 1");
      const busy = await openRaw(proxy.port);
      const up = await startUpstream((client) => {
        setTimeout(
          () => client.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
          100,
        );
      });
      busy.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await busy.until(() => up.connections.length === 1 && up.connections[0]!.text !== "");
      const drained = proxy.send({ drainMs: 3_000 });
      await idle.untilClosed();
      idle.socket.destroy();
      await busy.untilText("\r\n\r\nok");
      assert.match(busy.text, /Connection: close/);
      busy.socket.destroy();
      await drained;
      await assert.rejects(openRaw(proxy.port));
      await up.stop();
    } finally {
      await proxy.stop();
    }
  });

  test(`drain on ${runtime} answers the first request of new connections and closes unused ones`, async () => {
    const proxy = await startProxy(runtime);
    try {
      const [late, unused] = [await openRaw(proxy.port), await openRaw(proxy.port)];
      const idle = await openRaw(proxy.port);
      idle.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await idle.untilText("in place 1");
      const drained = proxy.send({ drainMs: 60_000 });
      await idle.untilClosed();
      late.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await late.untilText("in place 1");
      assert.match(late.text, /Connection: close/);
      await unused.untilClosed();
      assert.equal(unused.text, "");
      for (const { socket } of [late, unused, idle]) socket.destroy();
      await drained;
    } finally {
      await proxy.stop();
    }
  });

  test(`drain on ${runtime} destroys connections at its deadline`, async () => {
    const proxy = await startProxy(runtime);
    try {
      const up = await startUpstream(() => {});
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /u/${up.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.until(() => up.connections.length === 1);
      const started = performance.now();
      await proxy.send({ drainMs: 100 });
      assert.ok(performance.now() - started < 20_000);
      await client.untilClosed();
      await up.stop();
    } finally {
      await proxy.stop();
    }
  });
}
