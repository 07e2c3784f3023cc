// Revoked tokens at a real worker: requests are refused, and the streams that they opened end.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { Agent, request, type IncomingMessage, type ServerResponse } from "node:http";
import { afterEach, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { Revocation } from "@platform/kernel/identity";
import { waitFor } from "@platform/testing/wait";
import type { GlobalSpec } from "../../src/shared-state/index.ts";
import { ask, startGate, startUpstream, type GateWorker } from "./gate-worker.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const ISSUER = "http://identity.test";
const FAR = 4_000_000_000;
/** The path that the upstream always answers at once. */
const PROBE = "/probe";
const jwt: Partial<GlobalSpec> = { jwt: { secret: SECRET, leewaySeconds: 0 } };
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Starts a worker in front of an upstream; `entries` are revoked before the start. */
async function start(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  entries: Revocation[] = [],
): Promise<GateWorker> {
  const upstream = await startUpstream((incoming, response) => {
    if (incoming.url === PROBE) response.end();
    else handle(incoming, response);
  });
  const sockets = new WebSocketServer({ server: upstream.server });
  stops.push(() => sockets.close(), upstream.stop);
  const gate = await startGate([{ targets: [upstream.url] }], jwt, { issuer: ISSUER, entries });
  stops.push(() => gate.stop());
  return gate;
}

function asUser(sid: string, claims: Record<string, unknown> = {}) {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 60;
  const body = encode({ iss: ISSUER, sub: "ada", sid, exp, ...claims });
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${body}`;
  const signature = createHmac("sha256", SECRET).update(signed).digest("base64url");
  return { headers: { Authorization: `Bearer ${signed}.${signature}` } };
}

const ended = (sid: string): Revocation => ({ kind: "sid", value: sid, expires_at: FAR });
const revoke = (gate: GateWorker, ...entries: Revocation[]) =>
  gate.send({ type: "revocations", entries });

/** Resolves once the worker has taken in the revocation of `sid`. */
async function untilRefused(gate: GateWorker, sid: string): Promise<void> {
  const patience = AbortSignal.timeout(60_000);
  while ((await ask(gate.port, PROBE, asUser(sid))).status !== 401) patience.throwIfAborted();
}

function sendEvents(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("data: open\n\n");
}

async function open(gate: GateWorker, options: { headers: Record<string, string> }) {
  const sent = request({ host: "127.0.0.1", port: gate.port, path: "/", ...options });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const stream = { isEnded: false, isWhole: false, text: "" };
  answer.on("data", (piece: Buffer) => void (stream.text += piece.toString()));
  answer.on("end", () => void (stream.isWhole = true));
  answer.on("error", () => undefined);
  answer.on("close", () => void (stream.isEnded = true));
  stops.push(() => sent.destroy());
  await waitFor(() => stream.text !== "" || answer.statusCode !== 200);
  return stream;
}

test("a token that was verified before is refused with 401 once it is revoked", async () => {
  const gate = await start((_request, response) => response.end("here"));
  assert.equal((await ask(gate.port, "/", asUser("s1"))).status, 200);
  revoke(gate, ended("s1"));
  await untilRefused(gate, "s1");
  const { body, headers } = await ask(gate.port, "/", asUser("s1"));
  assert.match(body, /The token was revoked/);
  assert.match(String(headers["www-authenticate"]), /error="invalid_token"/);
  assert.equal((await ask(gate.port, "/", asUser("s2"))).status, 200);
});

test("tokens of the followed issuer are compared with the policy version of its feed", async () => {
  const gate = await start((_request, response) => response.end("here"));
  const isStale = async (claims: object): Promise<boolean> => {
    const { status, headers } = await ask(gate.port, "/", asUser("s1", { ...claims }));
    assert.equal(status, 200);
    return headers["x-token-refresh"] === "true";
  };
  assert.equal(await isStale({ policy_version: 1 }), false);
  gate.send({ type: "revocations", entries: [], policyVersion: 5 });
  await waitFor(async () => isStale({ policy_version: 4 }));
  assert.equal(await isStale({ policy_version: 5 }), false);
  assert.equal(await isStale({}), false);
  // The versions of another issuer are compared with the gateway's own.
  assert.equal(await isStale({ policy_version: 4, iss: "http://other.test" }), false);
  gate.send({ type: "revocations", entries: [], policyVersion: undefined });
  await waitFor(async () => !(await isStale({ policy_version: 4 })));
});

/** Sends requests over one connection, one after another. */
function connect(gate: GateWorker) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  stops.push(() => agent.destroy());
  const sockets = new Set<unknown>();
  const get = async (options: { headers: Record<string, string> }) => {
    const sent = request({ host: "127.0.0.1", port: gate.port, path: "/", agent, ...options });
    sent.end();
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    sockets.add(sent.socket);
    let body = "";
    for await (const piece of answer.setEncoding("utf8")) body += String(piece);
    return { status: answer.statusCode, body };
  };
  return { get, sockets };
}

test("over one connection each request has the identity of its own token", async () => {
  const gate = await start((incoming, response) =>
    response.end(String(incoming.headers["x-user-id"])),
  );
  const { get, sockets } = connect(gate);
  const [ada, bob] = [asUser("s1", { sub: "ada" }), asUser("s2", { sub: "bob" })];
  const forged = { headers: { Authorization: ada.headers.Authorization.slice(0, -2) + "AA" } };
  const seen: string[] = [];
  for (const user of [ada, ada, bob, ada, forged, bob, bob, { headers: {} }, ada]) {
    const { status, body } = await get(user);
    seen.push(status === 200 ? body : String(status));
  }
  assert.deepEqual(seen, ["ada", "ada", "bob", "ada", "401", "bob", "bob", "401", "ada"]);
  assert.equal(sockets.size, 1);
});

test("a token that the connection has used is refused after its end and after its revocation", async () => {
  const gate = await start((_request, response) => response.end("here"));
  const { get, sockets } = connect(gate);
  const exp = Math.floor(Date.now() / 1_000) + 2;
  const short = asUser("s1", { exp });
  assert.equal((await get(short)).status, 200);
  const patience = AbortSignal.timeout(10_000);
  while ((await get(short)).status === 200) patience.throwIfAborted();
  assert.ok(Date.now() >= exp * 1_000);
  const long = asUser("s2");
  const revoked = untilRefused(gate, "s2");
  assert.equal((await get(long)).status, 200);
  revoke(gate, ended("s2"));
  await revoked;
  assert.equal((await get(long)).status, 401);
  assert.equal(sockets.size, 1);
});

test("a worker that starts later refuses what was revoked before", async () => {
  const gate = await start((_request, response) => response.end("here"), [ended("s1")]);
  assert.equal((await ask(gate.port, "/", asUser("s1"))).status, 401);
  assert.equal((await ask(gate.port, "/", asUser("s2"))).status, 200);
});

test("revocations apply to tokens of their issuer only", async () => {
  const gate = await start((_request, response) => response.end("here"), [ended("s1")]);
  const other = asUser("s1", { iss: "http://another.test" });
  assert.equal((await ask(gate.port, "/", other)).status, 200);
});

test("event streams of a revoked session end gracefully, those of others continue", async () => {
  const gate = await start(sendEvents);
  const one = await open(gate, asUser("s1"));
  const other = await open(gate, asUser("s2"));
  revoke(gate, ended("s1"));
  await waitFor(() => one.isEnded);
  assert.ok(one.isWhole, "the response is complete, not cut");
  assert.ok(!other.isEnded);
  revoke(gate, { kind: "sub", value: "ada", epoch: 1, expires_at: FAR });
  await waitFor(() => other.isEnded);
});

test("WebSockets of a revoked session close with 1001", async () => {
  const gate = await start(() => undefined);
  const socket = new WebSocket(`ws://127.0.0.1:${gate.port}/`, asUser("s1"));
  stops.push(() => socket.terminate());
  await once(socket, "open");
  const closed = once(socket, "close") as Promise<[number]>;
  revoke(gate, ended("s1"));
  assert.equal((await closed)[0], 1001);
});

test("event streams end with their session", async () => {
  const gate = await start(sendEvents);
  const session_exp = Math.floor(Date.now() / 1000) + 3;
  const one = await open(gate, asUser("s1", { session_exp }));
  const other = await open(gate, asUser("s2", { session_exp: FAR }));
  assert.ok(!one.isEnded);
  await waitFor(() => one.isEnded, undefined, 12_000);
  assert.ok(one.isWhole && Date.now() / 1000 >= session_exp);
  assert.ok(!other.isEnded);
});

test("a response that turns out to be a stream after the revocation ends as well", async () => {
  let answer: (() => void) | undefined;
  const gate = await start((incoming, response) => {
    answer = () => sendEvents(incoming, response);
  });
  const opening = open(gate, asUser("s1"));
  await waitFor(() => answer !== undefined);
  revoke(gate, ended("s1"));
  await untilRefused(gate, "s1");
  answer!();
  const stream = await opening;
  await waitFor(() => stream.isEnded);
});

test("other requests of a revoked session in flight are completed", async () => {
  let finish: (() => void) | undefined;
  const gate = await start((_request, response) => {
    response.write("first ");
    finish = () => response.end("last");
  });
  const answered = ask(gate.port, "/", asUser("s1"));
  await waitFor(() => finish !== undefined);
  revoke(gate, ended("s1"));
  await untilRefused(gate, "s1");
  finish!();
  assert.deepEqual(await answered.then(({ status, body }) => [status, body]), [200, "first last"]);
});
