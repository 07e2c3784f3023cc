// Failures of local services: each has a clear answer, nothing looks complete that is not, and others are not disturbed.
import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { Cleanup, send, startTestClient, startTestRelay } from "../fixture/stage.ts";

const cleanup = new Cleanup();
let port = 0;
const host = "demo.localhost";
/** Behaviour of the local service on a new connection. */
let accept: (socket: Socket) => void = () => {};
const sockets: Socket[] = [];

before(async () => {
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    accept(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanup.add(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  ({ port } = await startTestRelay(cleanup));
  const local = (server.address() as AddressInfo).port;
  await startTestClient(cleanup, {
    port,
    tunnels: [
      { target: `127.0.0.1:${local}`, subdomain: "demo" },
      { target: "127.0.0.1:9", subdomain: "refusing" },
      { target: `https://127.0.0.1:${local}`, subdomain: "plain-not-tls" },
    ],
  });
});
after(() => cleanup.run());

/** Sets the behaviour for new connections, and closes those with another one. */
function behaveAs(behaviour: (socket: Socket) => void): void {
  accept = behaviour;
  for (const socket of sockets.splice(0)) socket.end();
}

function answerEach(text: string): (socket: Socket) => void {
  return (socket) => socket.on("data", () => socket.write(text));
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async function expectHealthy(): Promise<void> {
  behaveAs(answerEach(OK));
  assert.equal((await send({ port, host })).body.toString(), "ok");
}

test("a service that refuses connections is a 502 with its reason", async () => {
  const response = await send({ port, host: "refusing.localhost" });
  assert.equal(response.status, 502);
  assert.equal(response.headers["x-platform-tunnel-error"], "target_refused");
});

test("a failed TLS handshake with the service is a 502 with its reason", async () => {
  behaveAs((socket) => socket.end("not TLS at all\r\n"));
  const response = await send({ port, host: "plain-not-tls.localhost" });
  assert.equal(response.status, 502);
  assert.equal(response.headers["x-platform-tunnel-error"], "target_tls_failed");
});

const BROKEN: readonly (readonly [string, (socket: Socket) => void, string])[] = [
  [
    "closes without a response",
    (socket) => socket.on("data", () => socket.end()),
    "target_broke_off",
  ],
  ["resets", (socket) => socket.on("data", () => socket.resetAndDestroy()), "target_broke_off"],
  ["answers garbage", answerEach("\u0000\u0001garbage\r\n\r\n"), "invalid_response"],
  [
    "answers with two lengths",
    answerEach("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "invalid_response",
  ],
  [
    "answers with a bad chunk",
    answerEach("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "invalid_response",
  ],
  [
    "answers with an endless head",
    answerEach(`HTTP/1.1 200 OK\r\nX: ${"a".repeat(100_000)}`),
    "invalid_response",
  ],
  [
    "closes within the head",
    (socket) => socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\nX: ")),
    "invalid_response",
  ],
  [
    "switches protocols unasked",
    answerEach("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    "invalid_response",
  ],
];

for (const [name, behave, code] of BROKEN) {
  test(`a service that ${name} is a 502, and the next request is served`, async () => {
    behaveAs(behave);
    const response = await send({ port, host });
    assert.equal(response.status, 502);
    assert.equal(response.headers["x-platform-tunnel-error"], code);
    await expectHealthy();
  });
}

test("a response that breaks off never looks complete", async () => {
  behaveAs((socket) => {
    socket.on("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
      setTimeout(() => socket.destroy(), 20);
    });
  });
  await assert.rejects(send({ port, host }));
  behaveAs((socket) => {
    socket.on("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
      setTimeout(() => socket.end(), 20);
    });
  });
  await assert.rejects(send({ port, host }));
  await expectHealthy();
});

test("a response that ends with the connection is complete", async () => {
  behaveAs((socket) => socket.on("data", () => socket.end("HTTP/1.0 200 OK\r\n\r\nall of it")));
  const response = await send({ port, host });
  assert.equal(response.body.toString(), "all of it");
});

test("connections are used again, and a POST survives one that the service has just closed", async () => {
  await expectHealthy();
  for (let count = 0; count < 3; count++) await send({ port, host });
  assert.equal(sockets.length, 1, "a connection per request would be slow");
  // The service closes its idle connections; the relay learns of it at the same time as it sends the next request.
  for (const socket of sockets) socket.end();
  const response = await send({ port, host, method: "POST", body: "x=1" });
  assert.equal(response.status, 200);
});

test("a public client that disconnects frees the local connection", async () => {
  let closed = false;
  behaveAs((socket) => {
    socket.on("data", () => {});
    socket.on("close", () => {
      closed = true;
    });
  });
  const socket = connect(port, "127.0.0.1", () => {
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    setTimeout(() => socket.resetAndDestroy(), 30);
  });
  socket.on("error", () => {});
  await waitFor(() => closed);
});

test("a public client that reads nothing holds a bounded part of a download, and others are served", async () => {
  let written = 0;
  behaveAs((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
      const piece = Buffer.alloc(65_536);
      const fill = (): void => {
        do written += piece.length;
        while (socket.write(piece) && written < 1_000_000_000);
      };
      socket.on("drain", fill);
      fill();
    });
  });
  const slow = connect(port, "127.0.0.1", () => {
    slow.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    slow.pause();
  });
  let last = -1;
  await waitFor(async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    const isStill = written === last;
    last = written;
    return isStill;
  });
  // Kernel buffers of four sockets, and one window on the way.
  assert.ok(written < 60_000_000, `${written} bytes left the service`);
  for (let count = 0; count < 5; count++) await expectHealthy();
  slow.destroy();
});
