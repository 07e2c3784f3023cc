// HTTP through relay and client: responses of a local service reach public clients unchanged, and vice versa. With our
// client, and with one in Python that was written from the wire protocol's page alone.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { waitFor } from "@platform/testing/wait";
import type { RequestEvent } from "../../src/frame/messages.ts";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

/** Starts a client of a port under the name `demo`; returns the requests that it reports, if it does. */
type StartClient = (
  cleanup: Cleanup,
  port: number,
  localPort: number,
) => Promise<readonly RequestEvent[] | undefined>;

const startOwn: StartClient = async (cleanup, port, localPort) => {
  const stage = await startTestClient(cleanup, {
    port,
    tunnels: [{ target: `127.0.0.1:${localPort}`, subdomain: "demo" }],
  });
  return stage.requests;
};

const startPython: StartClient = async (cleanup, port, localPort) => {
  const path = fileURLToPath(new URL("../fixture/wire_client.py", import.meta.url));
  const child = spawn("python3", [path, `127.0.0.1:${port}`, String(localPort), "demo"]);
  cleanup.add(() => child.kill("SIGKILL"));
  let out = "";
  child.stdout.on("data", (bytes) => void (out += String(bytes)));
  await waitFor(() => out.includes("http://demo.localhost"));
  return undefined;
};

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe("our client", () => runSuite(startOwn));
describe("a client in Python", { skip: hasPython ? false : "python3 is missing" }, () => {
  runSuite(startPython);
});

function runSuite(startClient: StartClient): void {
  const cleanup = new Cleanup();
  let port = 0;
  let localPort = 0;
  let requests: readonly RequestEvent[] | undefined;
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const host = "demo.localhost";

  before(async () => {
    const relay = await startTestRelay(cleanup, { response_timeout_ms: 1_000 });
    ({ port } = relay);
    localPort = await startLocal(cleanup, (request, response) => handle(request, response));
    requests = await startClient(cleanup, port, localPort);
  });
  after(() => cleanup.run());

  function digest(bytes: Buffer): string {
    return createHash("sha256").update(bytes).digest("hex");
  }

  /** Sends bytes and collects the answer until `isDone` or the end. */
  function exchange(bytes: string, isDone: (text: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket: Socket = connect(port, "127.0.0.1", () => socket.write(bytes));
      let text = "";
      socket.setTimeout(10_000, () => reject(new Error(`no end after: ${text}`)));
      socket.on("data", (piece: Buffer) => {
        text += piece.toString("latin1");
        if (!isDone(text)) return;
        socket.destroy();
        resolve(text);
      });
      socket.on("error", reject);
      socket.on("end", () => resolve(text));
    });
  }

  test("a page is served, with the request's path and query, and reported to the client", async () => {
    handle = (request, response) => response.end(`${request.method} ${request.url}`);
    const response = await send({ port, host, path: "/a%20b?c=d&e" });
    assert.equal(response.status, 200);
    assert.equal(response.body.toString(), "GET /a%20b?c=d&e");
    const reported = requests;
    if (reported === undefined) return;
    await waitFor(() => reported.some(({ path }) => path === "/a%20b"));
    const line = reported.find(({ path }) => path === "/a%20b")!;
    assert.deepEqual([line.method, line.status], ["GET", 200]);
    assert.ok(line.latency_ms > 0 && line.latency_ms < 10_000);
  });

  test("uploads and downloads of many windows arrive unchanged", async () => {
    handle = (request, response) => {
      const hash = createHash("sha256");
      request.on("data", (piece: Buffer) => hash.update(piece));
      request.on("end", () => response.end(hash.digest("hex")));
    };
    const body = randomBytes(20_000_000);
    const up = await send({ port, host, method: "POST", body });
    assert.equal(up.body.toString(), digest(body));
    handle = (_request, response) => {
      response.writeHead(200, { "content-length": body.length });
      response.end(body);
    };
    const down = await send({ port, host });
    assert.equal(digest(down.body), digest(body));
  });

  test("chunked content with trailers passes in both directions", async () => {
    handle = (request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        response.writeHead(200, { trailer: "X-Sum" });
        response.write(Buffer.concat(pieces));
        response.addTrailers({ "X-Sum": request.trailers["x-count"] ?? "none" });
        response.end();
      });
    };
    const text = await exchange(
      `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\nTrailer: X-Count\r\nTE: trailers\r\nConnection: TE\r\n\r\n3\r\nabc\r\n0\r\nX-Count: 3\r\n\r\n`,
      (seen) => seen.includes("X-Sum: 3\r\n\r\n"),
    );
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.match(text, /\r\nabc\r\n/);
  });

  test("103 Early Hints and the final response both arrive", async () => {
    handle = (_request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.end("done");
    };
    const text = await exchange(
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      (seen) => seen.endsWith("done"),
    );
    assert.match(text, /^HTTP\/1\.1 103 [^]*link: <\/style\.css>[^]*HTTP\/1\.1 200 OK/i);
  });

  test("Expect: 100-continue is answered before the body is sent", async () => {
    handle = (request, response) => {
      request.resume();
      request.on("end", () => response.end("got it"));
    };
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write(
          `POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n`,
        );
      });
      let seen = "";
      socket.setTimeout(10_000, () => reject(new Error(seen)));
      socket.on("data", (piece: Buffer) => {
        if (seen === "") socket.write("abc");
        seen += piece.toString();
      });
      socket.on("end", () => resolve(seen));
    });
    assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*got it$/);
  });

  test("HEAD has the length of the content and none of it, and the connection can be used again", async () => {
    handle = (request, response) => {
      response.writeHead(200, { "content-length": 5 });
      response.end(request.method === "HEAD" ? undefined : "hello");
    };
    const text = await exchange(
      `HEAD / HTTP/1.1\r\nHost: ${host}\r\n\r\nGET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      (seen) => seen.endsWith("hello"),
    );
    assert.equal(text.match(/content-length: 5/gi)?.length, 2);
  });

  test("range requests reach the local service", async () => {
    handle = (request, response) => {
      response.writeHead(206, { "content-range": "bytes 0-1/10" });
      response.end(request.headers.range);
    };
    const response = await send({ port, host, headers: { range: "bytes=0-1" } });
    assert.equal(response.status, 206);
    assert.equal(response.body.toString(), "bytes=0-1");
  });

  test("events arrive one by one while the stream stays open", async () => {
    let stream: ServerResponse | undefined;
    handle = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1\n\n");
      stream = response;
    };
    let seen = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    });
    socket.on("data", (piece: Buffer) => (seen += piece.toString()));
    await waitFor(() => seen.includes("data: 1"));
    assert.ok(!seen.includes("data: 2"));
    stream!.write("data: 2\n\n");
    await waitFor(() => seen.includes("data: 2"));
    socket.destroy();
    // The local service is told that its reader has gone.
    await waitFor(() => stream!.destroyed);
  });

  test("the Host is the target's, and forwarding fields of the public client are replaced", async () => {
    handle = (request, response) => response.end(JSON.stringify(request.headers));
    const response = await send({
      port,
      host: `${host}:${port}`,
      headers: {
        "x-forwarded-for": "6.6.6.6",
        "x-forwarded-host": "evil.example",
        forwarded: "for=6.6.6.6",
        "x-real-ip": "6.6.6.6",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        tracestate: "vendor=1",
      },
    });
    const headers = JSON.parse(response.body.toString()) as Record<string, string>;
    assert.equal(headers["host"], `127.0.0.1:${localPort}`);
    assert.equal(headers["x-forwarded-for"], "127.0.0.1");
    assert.equal(headers["x-forwarded-host"], `${host}:${port}`);
    assert.equal(headers["x-forwarded-proto"], "http");
    assert.equal(headers["x-real-ip"], undefined);
    assert.ok(!JSON.stringify(headers).includes("6.6.6.6"));
    assert.match(
      headers["traceparent"]!,
      /^00-0af7651916cd43dd8448eb211c80319c-(?!b7ad6b7169203331)/,
    );
    assert.equal(headers["tracestate"], "vendor=1");
  });

  test("cookies for the relay's domain are dropped, those of the tunnel's host are kept", async () => {
    handle = (_request, response) => {
      response.setHeader("set-cookie", [
        "a=1; Path=/",
        "b=2; Domain=localhost",
        "c=3; domain=.LOCALHOST",
      ]);
      response.end();
    };
    const response = await send({ port, host });
    assert.deepEqual(response.headers["set-cookie"], ["a=1; Path=/"]);
  });

  test("a response without an end is given up with 504, and the next request is served", async () => {
    handle = () => {};
    const response = await send({ port, host });
    assert.equal(response.status, 504);
    assert.equal(response.headers["x-platform-tunnel-error"], "target_timeout");
    handle = (_request, answer) => answer.end("fine");
    assert.equal((await send({ port, host })).body.toString(), "fine");
  });

  test("errors of the relay are pages for browsers and problem documents for programs", async () => {
    const page = await send({
      port,
      host: "nobody.localhost",
      headers: { accept: "text/html,*/*" },
    });
    assert.equal(page.status, 404);
    assert.match(page.headers["content-type"]!, /^text\/html/);
    assert.match(String(page.headers["content-security-policy"]), /default-src 'none'/);
    const problem = await send({ port, host: "nobody.localhost", path: "/x?token=secret" });
    assert.equal(problem.headers["x-platform-tunnel-error"], "unknown_host");
    assert.equal(problem.headers["content-type"], "application/problem+json");
    const document = JSON.parse(problem.body.toString()) as Record<string, unknown>;
    assert.equal(document["status"], 404);
    assert.ok(!problem.body.includes("secret"));
  });

  const HOSTS: readonly (readonly [string, number])[] = [
    ["demo.localhost", 200],
    ["DEMO.LocalHost", 200],
    ["demo.localhost:1", 200],
    ["demo.localhost.", 200],
    ["demo.localhost.:8443", 200],
    ["x.demo.localhost", 404],
    ["demo.localhost.evil.example", 404],
    ["demolocalhost", 404],
    ["evil.example", 404],
    ["demo.localhost@evil.example", 400],
    ["demo..localhost", 400],
    [".localhost", 400],
    ["demo.localhost, evil", 400],
  ];

  for (const [name, status] of HOSTS) {
    test(`the Host ${name} is answered with ${status}`, async () => {
      handle = (_request, response) => response.end();
      assert.equal((await send({ port, host: name })).status, status);
    });
  }

  test("Host localhost and IP addresses are the API, never a tunnel", async () => {
    for (const name of ["localhost", `127.0.0.1:${port}`, `[::1]:${port}`]) {
      const response = await send({ port, host: name, path: "/healthz" });
      assert.equal(response.status, 200, name);
      const body = JSON.parse(response.body.toString()) as Record<string, string>;
      assert.deepEqual(body, { status: "UP", service: "tunnel", version: "0.1.0" });
    }
    const elsewhere = await send({ port, host, path: "/api/v1/tunnels" });
    assert.equal(elsewhere.status, 200, "the tunnel's own /api belongs to its local service");
    assert.equal(elsewhere.headers["content-type"], undefined);
  });

  test("smuggled requests are refused by the relay and never reach the local service", async () => {
    let count = 0;
    handle = (_request, response) => {
      count++;
      response.end();
    };
    const payloads = [
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef`,
      `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: other.localhost\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost : ${host}\r\n\r\n`,
      `GET / HTTP/1.1\nHost: ${host}\n\n`,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer_Encoding: chunked\r\n\r\n`,
    ];
    for (const payload of payloads) {
      const text = await exchange(payload, (seen) => seen.includes("\r\n\r\n"));
      assert.match(text, /^HTTP\/1\.1 (?:400|501) /, payload);
    }
    assert.equal(count, 0);
  });
}
