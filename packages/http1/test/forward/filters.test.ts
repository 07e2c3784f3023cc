// Black-box tests of request taps, response filters and content sources, on each runtime.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { STREAM_BYTES } from "../rig/filters.ts";
import { type Proxy, runtimes, startProxy } from "../rig/proxy.ts";
import {
  type RawClient,
  type RawUpstream,
  answering,
  ask,
  openRaw,
  startUpstream,
} from "../rig/raw.ts";

const OK = "HTTP/1.1 200 OK\r\nDate: D\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED = "HTTP/1.1 200 OK\r\nDate: D\r\nTransfer-Encoding: chunked\r\n\r\n";

for (const runtime of runtimes) {
  describe(`filters on ${runtime}`, () => {
    let proxy: Proxy;
    const upstreams: RawUpstream[] = [];

    before(async () => {
      proxy = await startProxy(runtime, {
        timeouts: { halfCloseMs: 300, lingerMs: 300 },
        plan: { timeouts: { bodyIdleMs: 5_000 } },
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

    async function filtered(name: string, answer: string | Buffer, lines = ""): Promise<string> {
      const { port } = await upstream(answering(answer));
      return ask(
        proxy.port,
        `GET /f/${name}/${port}/x HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`,
      );
    }

    async function until(...notes: string[]): Promise<void> {
      await proxy.until(({ seen }) => notes.every((note) => seen.includes(note)));
    }

    test("an observer sees head, bytes and end, and the response stays as it was", async () => {
      assert.equal(
        await filtered("observe", OK),
        "HTTP/1.1 200 OK\r\nDate: D\r\nX-Seen: 1 200\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
      );
      await until("head 200 2 true", "response complete 2", "request complete ");
    });

    test("a reason phrase of the upstream is kept", async () => {
      const answer = await filtered("observe", OK.replace("OK", "Fine"));
      assert.match(answer, /^HTTP\/1\.1 200 Fine\r\n/);
    });

    test("chunked content is transformed and keeps its trailers", async () => {
      const body = "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
      assert.equal(
        await filtered("upper", CHUNKED + body),
        "HTTP/1.1 200 OK\r\nDate: D\r\nX-Seen: 1 200\r\nX-Case: upper\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nABCDE\r\n0\r\nX-Sum: 5\r\n\r\n",
      );
      await until("response complete 5");
    });

    test("trailers of a filter are added, and replace those of the upstream with their names", async () => {
      const body = "3\r\nabc\r\n0\r\nX-Sum: 3\r\nX-Other: 1\r\n\r\n";
      const answer = await filtered("trailers", CHUNKED + body);
      assert.match(answer, /\r\n\r\n3\r\nABC\r\n0\r\nX-Other: 1\r\nX-Sum: own\r\n\r\n$/);
    });

    test("a filter ends content that the upstream breaks off, with bytes of its own", async () => {
      const { port } = await upstream((client) => {
        client.socket.write(`${CHUNKED}3\r\nabc\r\n`);
        setTimeout(() => client.socket.end("2\r\nd"), 20);
      });
      const answer = await ask(
        proxy.port,
        `GET /f/complete/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /\r\n\r\n3\r\nabc\r\n(?:1\r\nd\r\n)?c\r\n\[broken off\]\r\n0\r\n\r\n$/);
    });

    test("content that ends with the head gets a length", async () => {
      const answer = await filtered("upper", `${CHUNKED}3\r\nabc\r\n0\r\n\r\n`);
      assert.match(answer, /\r\nContent-Length: 3\r\nConnection: close\r\n\r\nABC$/);
    });

    test("an HTTP/1.0 client gets transformed content without chunks", async () => {
      const { port } = await upstream((client) => {
        client.socket.write(`${CHUNKED}3\r\nabc\r\n`);
        setTimeout(() => client.socket.write("2\r\nde\r\n0\r\n\r\n"), 20);
      });
      const answer = await ask(proxy.port, `GET /f/upper/${port}/x HTTP/1.0\r\n\r\n`);
      assert.match(answer, /\r\nConnection: close\r\n\r\nABCDE$/);
      assert.doesNotMatch(answer, /transfer-encoding/i);
    });

    test("close-delimited content is transformed", async () => {
      const { port } = await upstream((client) => {
        client.socket.write("HTTP/1.1 200 OK\r\nDate: D\r\n\r\nabc");
        setTimeout(() => client.socket.end("de"), 20);
      });
      const answer = await ask(
        proxy.port,
        `GET /f/upper/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /chunked\r\nConnection: close\r\n\r\n3\r\nABC\r\n2\r\nDE\r\n0\r\n\r\n$/);
    });

    test("HEAD, 204 and 304 have no content and keep their length", async () => {
      const { port } = await upstream(
        answering("HTTP/1.1 200 OK\r\nDate: D\r\nContent-Length: 7\r\n\r\n"),
      );
      const answer = await ask(
        proxy.port,
        `HEAD /f/observe/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /Content-Length: 7\r\nConnection: close\r\n\r\n$/);
      await until("head 200 7 false", "response complete 0");
      const none = await filtered("observe", "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n");
      assert.match(
        none,
        /^HTTP\/1\.1 204 No Content\r\nDate: D\r\nX-Seen: 1 204\r\nConnection: close\r\n\r\n$/,
      );
      const same = await filtered(
        "observe",
        'HTTP/1.1 304 Not Modified\r\nDate: D\r\nETag: "a"\r\nContent-Length: 9\r\n\r\n',
      );
      assert.match(
        same,
        /ETag: "a"\r\nX-Seen: 1 304\r\nContent-Length: 9\r\nConnection: close\r\n\r\n$/,
      );
    });

    test("informational responses and upgrades pass without filters", async () => {
      const answer = await filtered("upper", `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`);
      assert.match(
        answer,
        /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
      );
      assert.match(answer, /\r\n\r\nOK$/);
      const { port } = await upstream((client) => {
        if (client.text.endsWith("\r\n\r\n")) {
          client.socket.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nlower",
          );
        }
      });
      const client = await openRaw(proxy.port);
      client.socket.write(
        `GET /f/upper/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`,
      );
      await client.untilText("lower");
      client.socket.destroy();
    });

    test("an asynchronous filter transforms megabytes with bounded memory, for a slow client too", async () => {
      const size = 6_000_000;
      const body = Buffer.alloc(size, "ab");
      const { port } = await upstream(
        answering(
          Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`), body]),
        ),
      );
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /f/double/${port}/x HTTP/1.0\r\n\r\n`);
      await client.untilText("aabb");
      client.socket.pause();
      await new Promise((resolve) => setTimeout(resolve, 200));
      client.socket.resume();
      await client.untilClosed();
      const content = client.text.slice(client.text.indexOf("\r\n\r\n") + 4);
      assert.equal(content.length, size * 2);
      assert.match(content.slice(-1_000), /^(?:aabb)+$/);
      const { seen } = await proxy.state();
      assert.deepEqual(
        seen.filter((note) => note.startsWith("held")),
        [],
      );
    });

    test("a connection continues after filtered responses", async () => {
      const { port } = await upstream(answering(OK));
      const client = await openRaw(proxy.port);
      const request = (name: string): string =>
        `GET /f/${name}/${port}/x HTTP/1.1\r\nHost: a\r\n\r\n`;
      client.socket.write(
        request("double") + request("none") + request("upper") + request("observe"),
      );
      await client.until(() => client.text.split("HTTP/1.1 200").length === 5);
      await client.until(() => client.text.endsWith("ok"));
      assert.match(client.text, /ookk[^]*ok[^]*OK[^]*ok$/);
      client.socket.destroy();
    });

    test("a filter that holds the head changes status and length after the content", async () => {
      const { port } = await upstream((client) => {
        client.socket.write(`${CHUNKED}3\r\nabc\r\n`);
        setTimeout(() => client.socket.write("2\r\nde\r\n0\r\n\r\n"), 20);
      });
      const answer = await ask(
        proxy.port,
        `GET /f/collect/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.equal(
        answer,
        "HTTP/1.1 203 Non-Authoritative Information\r\nDate: D\r\nX-Seen: 1 200\r\nX-Collected: 5\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde",
      );
    });

    test("a filter that holds the head answers instead", async () => {
      const answer = await filtered("collect", OK.replace("2\r\n\r\nok", "6\r\n\r\nanswer"));
      assert.match(answer, /^HTTP\/1\.1 502 [^]*\r\n\r\nreplaced by the filter$/);
      await until("collector aborted");
    });

    test("an upstream that breaks off while the head is held gives 502", async () => {
      const { port } = await upstream((client) => {
        client.socket.end(`${CHUNKED}3\r\nabc\r\n`);
      });
      const answer = await ask(
        proxy.port,
        `GET /f/collect/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 502 /);
      await until("collector aborted");
    });

    test("a filter that fails gives 500, or destroys the connection after the head", async () => {
      assert.match(await filtered("throw", OK), /^HTTP\/1\.1 500 /);
      assert.match(await filtered("fail", OK), /^HTTP\/1\.1 500 /);
      assert.match(await filtered("bad-field", OK), /^HTTP\/1\.1 500 /);
      const { port } = await upstream((client) => {
        client.socket.write(CHUNKED);
        setTimeout(() => client.socket.write("3\r\nabc\r\n"), 50);
      });
      const answer = await ask(proxy.port, `GET /f/throw/${port}/x HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.match(answer, /chunked\r\n\r\n$/);
    });

    test("a filter that ends early, or with too little, is framed correctly", async () => {
      const long = OK.replace("2\r\n\r\nok", "10\r\n\r\n0123456789");
      assert.match(
        await filtered("first5", long),
        /Content-Length: 5\r\nConnection: close\r\n\r\n01234$/,
      );
      const { port } = await upstream(answering(OK));
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /f/short/${port}/x HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilClosed();
      assert.doesNotMatch(client.text, /\r\n\r\nok/);
      client.socket.destroy();
    });

    test("filters are aborted when the client or the upstream is lost", async () => {
      const silent = await upstream((client) => {
        client.socket.write(`${CHUNKED}3\r\nabc\r\n`);
      });
      const client = await openRaw(proxy.port);
      client.socket.write(`GET /f/observe/${silent.port}/x HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.untilText("abc");
      client.socket.destroy();
      await until("response aborted");
      const breaking = await upstream(({ socket }) => {
        socket.write(`${CHUNKED}3\r\nabc\r\n`, () =>
          setTimeout(() => socket.resetAndDestroy(), 20),
        );
      });
      const answer = await ask(
        proxy.port,
        `GET /f/observe/${breaking.port}/x HTTP/1.1\r\nHost: a\r\n\r\n`,
      );
      assert.doesNotMatch(answer, /0\r\n\r\n$/);
      await until("response aborted");
    });

    test("a tap sees the content of a request once, whatever its framing", async () => {
      const { port } = await upstream((client) => {
        if (/0\r\n\r\n$|hello$/.test(client.text)) client.socket.write(OK);
      });
      const head = (path: string, framing: string): string =>
        `POST /f/none/${port}/${path} HTTP/1.1\r\nHost: a\r\n${framing}\r\nConnection: close\r\n\r\n`;
      const chunks = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
      for (const [path, framing, body] of [
        ["x", "Content-Length: 5", "hello"],
        ["x", "Transfer-Encoding: chunked", chunks],
        ["collected", "Transfer-Encoding: chunked", chunks],
      ] as const) {
        const answer = await ask(proxy.port, head(path, framing) + body);
        assert.match(answer, /^HTTP\/1\.1 200 /);
        const { seen } = await proxy.until((state) => state.seen.length > 0);
        assert.deepEqual(seen, ["request complete hello"]);
      }
    });

    test("a tap is told that the client left within its body", async () => {
      const { port } = await upstream(() => {});
      const client = await openRaw(proxy.port);
      client.socket.write(
        `POST /f/none/${port}/x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf`,
      );
      await proxy.until(({ server }) => server.active === 2);
      client.socket.destroy();
      await until("request aborted half");
    });

    test("a stored response replaces a 304, and the upstream's connection is kept", async () => {
      const { port, connections } = await upstream(
        answering("HTTP/1.1 304 Not Modified\r\nDate: D\r\n\r\n"),
      );
      const client = await openRaw(proxy.port);
      const request = `GET /f/stored/${port}/x HTTP/1.1\r\nHost: a\r\n\r\n`;
      client.socket.write(request + request);
      const stored =
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 6\r\n\r\nstored";
      await client.until(() => client.text === stored + stored);
      assert.equal(connections.length, 1);
      client.socket.destroy();
      const { finished } = await proxy.until(({ finished: all }) => all.length >= 2);
      assert.deepEqual(
        finished.slice(-2).map(({ outcome, status, attempts }) => [outcome, status, attempts]),
        [
          ["complete", 200, 1],
          ["complete", 200, 1],
        ],
      );
    });

    test("a stream replaces a failure of the upstream, and may be aborted", async () => {
      const { port } = await upstream(
        answering("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"),
      );
      const request = `GET /f/stored/${port}/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
      const answer = await ask(proxy.port, request);
      assert.equal(answer.length - answer.indexOf("\r\n\r\n") - 4, STREAM_BYTES);
      await until("source closed 0");
      const client = await openRaw(proxy.port);
      client.socket.write(request);
      await client.untilText("000");
      client.socket.destroy();
      await proxy.until(({ seen, finished }) => {
        const isClosed = seen.some((note) => /^source closed [1-9]/.test(note));
        return isClosed && finished.some(({ outcome }) => outcome === "client-aborted");
      });
    });

    test("a handler's source is read as the client accepts it, and not for HEAD", async () => {
      const answer = await ask(
        proxy.port,
        "GET /zeros?2000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      );
      assert.equal(answer.length - answer.indexOf("\r\n\r\n") - 4, 2_000_000);
      await until("source closed 0");
      const head = await ask(
        proxy.port,
        "HEAD /zeros?2000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      );
      assert.match(head, /Content-Length: 2000000\r\n[^]*\r\n\r\n$/);
      await until("source closed 2000000");
      const client = await openRaw(proxy.port);
      client.socket.write("GET /zeros?900000000 HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.untilText("000");
      client.socket.destroy();
      await proxy.until(({ seen }) => seen.some((note) => /^source closed [1-9]/.test(note)));
    });
  });
}
