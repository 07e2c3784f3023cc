// Replaying against candidates that misbehave, and of recordings that are damaged or forged.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { replayShadow, type ReplayOptions } from "../../src/replay/replay.ts";
import { formatReport } from "../../src/replay/report.ts";

let folder = "";
let server: Server;
let sockets: Socket[] = [];
/** Bytes of each connection. */
let received: string[] = [];
let respond: (socket: Socket, head: string) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "gate-replay-"));
  sockets = [];
  received = [];
  server = createServer((socket) => {
    sockets.push(socket);
    const index = received.push("") - 1;
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      received[index] += bytes.toString("latin1");
      if (bytes.includes("\r\n\r\n")) respond(socket, bytes.toString("latin1"));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

const text = (content: string) => ({ bytes: content.length, text: content });

function record(request: object = {}, response: object = {}): string {
  return JSON.stringify({
    timestamp: "2026-01-01T00:00:00.000Z",
    latency_ms: 1,
    upstream_ms: 1,
    request: { method: "GET", target: "/a", headers: [["Host", "a"]], body: text(""), ...request },
    response: { status: 200, headers: [], body: text("ok"), ...response },
  });
}

async function replay(lines: readonly string[], change: Partial<ReplayOptions> = {}) {
  const log = join(folder, "recording.jsonl");
  writeFileSync(log, lines.join("\n"));
  const result = await replayShadow({
    log,
    target: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    concurrency: 1,
    timeoutMs: 20_000,
    host: "client",
    headers: [],
    methods: [],
    limit: undefined,
    ignoredHeaders: [],
    ignoredMembers: [],
    redactedNames: [],
    shownMax: 20,
    ...change,
  });
  return { ...result, report: formatReport(result) };
}

const failures: [name: string, act: (socket: Socket) => void, reason: RegExp][] = [
  ["hangs", () => undefined, /no response within 300 ms/],
  ["resets the connection", (socket) => socket.resetAndDestroy(), /ECONNRESET|socket hang up/],
  ["closes without a response", (socket) => socket.end(), /socket hang up/],
  ["is not HTTP", (socket) => socket.end("\u001b[2Jhello\r\n\r\n"), /Parse Error/],
  [
    "switches protocols",
    (socket) => socket.write("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
    /switched protocols/,
  ],
  [
    "ends in the middle of a body",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok"),
    /aborted/,
  ],
  [
    "sends without end",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const timer = setInterval(() => socket.write("x".repeat(10_000)), 10);
      socket.on("close", () => clearInterval(timer));
    },
    /no response within 300 ms/,
  ],
];

for (const [name, act, reason] of failures) {
  test(`a candidate that ${name} fails the request, and the next one is sent`, async () => {
    let count = 0;
    respond = (socket) => {
      if (count++ === 0) act(socket);
      else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    };
    const timeoutMs = reason.source.includes("300 ms") ? 300 : 20_000;
    const { failed, same, findings, report } = await replay([record(), record()], { timeoutMs });
    assert.deepEqual([failed, same], [1, 1]);
    assert.match(findings[0]?.failure ?? "", reason);
    assert.ok(!report.includes("\u001b"));
  });
}

test("a redirect is a response like any other: nothing is sent to where it points", async () => {
  respond = (socket) =>
    socket.end("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/?token=t\r\n\r\n");
  const { report, different } = await replay([record()]);
  assert.equal(different, 1);
  assert.match(report, /^  status {2}200 → 302$/m);
  assert.match(report, /location: \(missing\) → http:\/\/127.0.0.1:1\/\?token=%5Bredacted%5D$/m);
});

test("a decompression bomb and a hash of a compressed response are compared within bounds", async () => {
  const send = (socket: Socket, content: Buffer): void => {
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${content.length}\r\n\r\n`,
    );
    socket.end(content);
  };
  respond = (socket) => send(socket, gzipSync(Buffer.alloc(40_000_000)));
  assert.match((await replay([record()])).report, /a body → a body that is too long or damaged$/m);
  const sha256 = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
  respond = (socket) => send(socket, gzipSync("ok"));
  assert.equal(
    (await replay([record({}, { body: { bytes: 2, omitted: "too-large", sha256 } })])).same,
    1,
  );
  respond = (socket) => send(socket, gzipSync("no"));
  assert.equal(
    (await replay([record({}, { body: { bytes: 2, omitted: "too-large", sha256 } })])).different,
    1,
  );
});

test("a forged recording reaches no other host and does not change the framing", async () => {
  respond = (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  const headers = [
    ["Host", "other.example"],
    ["Content-Length", "1"],
    ["Transfer-Encoding", "chunked"],
    ["Connection", "upgrade"],
    ["Upgrade", "websocket"],
    ["Expect", "100-continue"],
  ];
  const { same, failed, skipped } = await replay([
    record({ target: "//other.example/x", headers }),
    record({ target: "http://other.example/x" }),
    record({ method: "CONNECT" }),
    record({ target: "/a b\r\nX: y" }),
    record({ headers: [["X", "a\r\nY: z"]] }),
    record({ method: "POST", headers, body: text("abc") }),
    record({ method: "POST", headers: [["Host", "a"]] }),
  ]);
  assert.deepEqual([same, failed], [3, 2]);
  assert.deepEqual(skipped, { "lines that are not of a recording": 2 });
  const all = received.join("");
  assert.match(all, /^GET \/\/other\.example\/x HTTP\/1\.1\r\nHost: other\.example\r\n/);
  assert.doesNotMatch(all, /transfer-encoding|upgrade|expect|^[XY]: /im);
  assert.deepEqual(all.match(/content-length: .*/gi), ["Content-Length: 3", "Content-Length: 0"]);
});

test("a connection that the candidate closed while idle costs no response, and no request is sent twice", async () => {
  respond = (socket) => {
    // Without `Connection: close`, the client uses the connection again, and finds it closed.
    const index = sockets.indexOf(socket);
    if ((received[index] ?? "").match(/ HTTP\/1\.1/g)?.length === 2) socket.resetAndDestroy();
    else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  };
  const post = record({ method: "POST", body: text("abc") });
  const { same, failed } = await replay([record(), record(), post, post]);
  assert.deepEqual([same, failed], [4, 0]);
  assert.equal(received.join("").match(/POST /g)?.length, 2);
});

test("damaged lines are skipped and counted, with the line numbers of the others right", async () => {
  respond = (socket) => socket.end("HTTP/1.1 500 x\r\nContent-Length: 2\r\n\r\nok");
  const { skipped, findings } = await replay([
    "",
    "\0\0\0",
    record().slice(0, 50),
    `${record().slice(0, 50)}${record()}`,
    "x".repeat(17_000_000),
    "[]",
    '{"request":null}',
    record({}, { status: 99 }),
    record(),
    record().slice(0, -1),
  ]);
  assert.deepEqual(skipped, { "lines that are not of a recording": 8 });
  assert.deepEqual(
    findings.map(({ line }) => line),
    [9],
  );
});

test("the report of a response that is not what it says shows no credentials", async () => {
  const send = (type: string, body: string) => (socket: Socket) =>
    socket.end(
      `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  const headers = [["Content-Type", "application/json"]];
  respond = send("application/json", '{"token":"tttt","cut');
  const cut = await replay([record({}, { headers, body: text('{"token":"[redacted]"}') })]);
  assert.match(cut.report, /\[redacted\]/);
  assert.doesNotMatch(cut.report, /tttt/);
  respond = send("image/png", '{"token":"tttt"}');
  const png = [["Content-Type", "image/png"]];
  const binary = await replay([record({}, { headers: png, body: { bytes: 3, base64: "if8A" } })]);
  assert.equal(binary.different, 1);
  assert.doesNotMatch(binary.report, /tttt|74747474/);
});
