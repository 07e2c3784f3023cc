// Revocations: matching, bounds, and a follower whose feed is up, down, slow, reset or lying.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import {
  createTokenVerifier,
  RevocationFollower,
  RevocationSet,
  toRevocable,
  TokenStreams,
  type RevocableToken,
  type Revocation,
} from "@platform/kernel/identity";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";

const ISSUER = "http://identity.test";
const TOKEN = "the token of the feed, long enough";
const FAR = 4_000_000_000;
const INTERVAL_MS = 20;

const matches: [name: string, revocation: Omit<Revocation, "expires_at">, token: RevocableToken][] =
  [
    ["a token id", { kind: "jti", value: "t1" }, { jti: "t1" }],
    ["a session", { kind: "sid", value: "s1" }, { sid: "s1", sub: "u1" }],
    ["a client", { kind: "client", value: "app" }, { client: "app" }],
    ["a key", { kind: "kid", value: "k1" }, { kid: "k1" }],
    ["an epoch of a user", { kind: "sub", value: "u1", epoch: 3 }, { sub: "u1", epoch: 2 }],
    ["a user without an epoch", { kind: "sub", value: "u1", epoch: 1 }, { sub: "u1" }],
  ];
for (const [name, revocation, token] of matches) {
  test(`a revocation of ${name} matches its tokens, of this issuer only`, () => {
    const set = new RevocationSet(ISSUER);
    assert.ok(!set.has({ ...token, iss: ISSUER }));
    set.add([{ ...revocation, expires_at: FAR }]);
    assert.ok(set.has({ ...token, iss: ISSUER }));
    assert.ok(!set.has({ ...token, iss: "http://another.test" }));
    assert.ok(!set.has({ iss: ISSUER, jti: "x", sid: "x", client: "x", kid: "x", sub: "x" }));
  });
}

test("tokens of the current epoch stay valid, also when an older revocation arrives late", () => {
  const set = new RevocationSet(ISSUER);
  const token = (epoch: number) => ({ iss: ISSUER, sub: "u1", epoch });
  set.add([{ kind: "sub", value: "u1", epoch: 3, expires_at: FAR }]);
  set.add([{ kind: "sub", value: "u1", epoch: 2, expires_at: FAR }]);
  assert.ok(set.has(token(2)));
  assert.ok(!set.has(token(3)));
});

test("the set is bounded: the oldest entries are dropped and counted; expired ones are swept", () => {
  const set = new RevocationSet(ISSUER, 3);
  const add = (value: string, expires_at = FAR) => set.add([{ kind: "sid", value, expires_at }]);
  for (const value of ["a", "b", "c"]) add(value);
  add("a");
  assert.deepEqual([set.size, set.dropped], [3, 0]);
  add("d", 100);
  assert.deepEqual([set.size, set.dropped], [3, 1]);
  assert.ok(!set.has({ iss: ISSUER, sid: "b" }), "the oldest");
  assert.ok(set.has({ iss: ISSUER, sid: "a" }), "added again later");
  set.sweep(100);
  assert.equal(set.size, 2);
  assert.ok(!set.has({ iss: ISSUER, sid: "d" }));
});

test("another thread gets an equal set", () => {
  const set = new RevocationSet(ISSUER);
  set.add([
    { kind: "sub", value: "u1", epoch: 3, expires_at: FAR },
    { kind: "kid", value: "k1", expires_at: FAR },
  ]);
  const copy = new RevocationSet(ISSUER);
  copy.add(structuredClone(set.list()));
  assert.deepEqual(copy.list(), set.list());
});

test("streams end when their token is revoked, once, and not after they were removed", () => {
  const set = new RevocationSet(ISSUER);
  const streams = new TokenStreams(set);
  const ended: string[] = [];
  const open = (name: string, sid: string) =>
    streams.add({ iss: ISSUER, sid }, () => ended.push(name));
  open("one", "s1");
  open("other", "s2");
  open("gone", "s1")();
  set.add([{ kind: "sid", value: "s1", expires_at: FAR }]);
  assert.equal(streams.endRevoked(), 1);
  assert.equal(streams.endRevoked(), 0);
  assert.deepEqual(ended, ["one"]);
  open("late", "s1");
  assert.deepEqual(ended, ["one", "late"], "revoked while it was being opened");
  assert.equal(streams.size, 1);
});

test("a verifier rejects revoked tokens that it has verified before", async () => {
  const set = new RevocationSet(ISSUER);
  const secret = "a secret of at least thirty-two bytes";
  const verifier = createTokenVerifier({
    clock: systemClock,
    secret,
    isRevoked: (claims) => set.hasClaims(claims),
  });
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: ISSUER, sub: "u1", sid: "s1", client_id: "app", epoch: 2, exp: FAR };
  const signed = `${encode({ alg: "HS256", kid: "k1" })}.${encode(claims)}`;
  const token = `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  const first = await verifier.verify(token);
  assert.ok(first.kind === "user");
  assert.deepEqual(toRevocable(first.claims), {
    iss: ISSUER,
    sub: "u1",
    sid: "s1",
    kid: "k1",
    client: "app",
    epoch: 2,
  });
  set.add([{ kind: "client", value: "app", expires_at: FAR }]);
  const second = await verifier.verify(token);
  assert.deepEqual(second.kind === "refused" && second.code, "revoked");
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A feed whose behaviour the test chooses, and a follower. */
async function follow(t: TestContext, answer: Answer, entriesMax?: number) {
  const feed = { answer, asked: [] as string[], authorization: "" };
  const server = createServer((request, response) => {
    feed.asked.push(request.url ?? "");
    feed.authorization = request.headers.authorization ?? "";
    feed.answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const revocations = new RevocationSet(ISSUER, entriesMax);
  const lines: { level: string; msg: string }[] = [];
  const added: string[] = [];
  const follower = new RevocationFollower({
    url: `http://127.0.0.1:${port}/revocations`,
    token: TOKEN,
    revocations,
    onAdded: (entries) => added.push(...entries.map(({ value }) => value)),
    clock: systemClock,
    log: createLogger({
      service: "test",
      format: "json",
      write: (line) => void lines.push(JSON.parse(line) as { level: string; msg: string }),
    }),
    intervalMs: INTERVAL_MS,
    timeoutMs: 200,
  });
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await follower.stop();
  });
  const read = (name: string): number => {
    const family = follower.collect().find((item) => item.name === name);
    assert.ok(family !== undefined && family.type !== "histogram", name);
    return [...family.samples][0]!.value;
  };
  follower.start();
  return { feed, server, follower, revocations, added, lines, read };
}

function send(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

/** A feed as identity sends it: entries 1 to `last`, 1 000 at a time. */
function createFeed(state: { last: number }): Answer {
  return (request, response) => {
    const since = Number(new URL(request.url!, "http://-").searchParams.get("since"));
    const to = Math.min(state.last, since + 1_000);
    const revocations = Array.from({ length: Math.max(0, to - since) }, (_, index) => ({
      seq: since + index + 1,
      kind: "sid",
      value: `s${since + index + 1}`,
      expires_at: FAR,
    }));
    const next = revocations.at(-1)?.seq ?? since;
    send(response, { revocations, next, latest: state.last });
  };
}

const has = (revocations: RevocationSet, sid: string) => revocations.has({ iss: ISSUER, sid });

test("the follower reads all entries, page by page, and then what is new", async (t) => {
  const state = { last: 2_500 };
  const { feed, revocations, added, read } = await follow(t, createFeed(state));
  await waitFor(() => has(revocations, "s2500"), "the last entry");
  assert.equal(feed.authorization, `Bearer ${TOKEN}`);
  // A request that was answered too late on a busy machine is sent again.
  assert.deepEqual(
    [...new Set(feed.asked)].slice(0, 3),
    [0, 1_000, 2_000].map((since) => `/revocations?since=${since}`),
  );
  state.last = 2_501;
  await waitFor(() => has(revocations, "s2501"), "the new entry");
  assert.equal(added.at(-1), "s2501");
  assert.equal(added.length, 2_501, "each entry was passed on once");
  assert.equal(read("platform_revocations"), 2_501);
});

test("a feed that is down leaves the known revocations in force, is reported, and recovers", async (t) => {
  const state = { last: 1 };
  const answer = createFeed(state);
  const { feed, revocations, lines, read, follower } = await follow(t, answer);
  await waitFor(() => has(revocations, "s1"), "the first entry");
  feed.answer = (request, response) => {
    request.socket.destroy();
    response.destroy();
  };
  await waitFor(() => read("platform_revocations_failures_total") >= 3, "failures");
  assert.ok(has(revocations, "s1"));
  const warnings = lines.filter(({ level }) => level === "warn");
  assert.equal(warnings.length, 1, "an outage is logged once a minute, not at every attempt");
  assert.match(warnings[0]!.msg, /revocation feed cannot be read/);
  assert.equal(follower.describe(), undefined, "a short outage is no warning");
  state.last = 2;
  feed.answer = answer;
  await waitFor(() => has(revocations, "s2"), "the entry of the outage");
  await waitFor(() => lines.some(({ msg }) => /is read again/.test(msg)), "the end of the outage");
});

test("a feed that is not ready yet when the service starts is not reported", async (t) => {
  const { feed, revocations, lines, read } = await follow(t, (_request, response) =>
    send(response, { status: "DOWN" }, 503),
  );
  await waitFor(() => read("platform_revocations_failures_total") >= 3, "failures");
  feed.answer = createFeed({ last: 1 });
  await waitFor(() => has(revocations, "s1"), "the first entry");
  assert.deepEqual(
    lines.filter(({ level }) => level !== "debug"),
    [],
  );
});

test("an identity service that needs a minute to start is not reported, and an outage after it once", async (t) => {
  let nowMs = 0;
  const lines: { level: string; msg: string }[] = [];
  const server = createServer((_request, response) => send(response, { status: "DOWN" }, 503));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const follower = new RevocationFollower({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    token: TOKEN,
    revocations: new RevocationSet(ISSUER),
    onAdded: () => undefined,
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    log: createLogger({
      service: "test",
      format: "json",
      write: (line) => void lines.push(JSON.parse(line) as { level: string; msg: string }),
    }),
    intervalMs: INTERVAL_MS,
  });
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await follower.stop();
  });
  const countFailures = () => {
    const families = follower.collect().filter(({ name }) => name.endsWith("failures_total"));
    const [family] = families;
    assert.ok(family?.type === "counter");
    return [...family.samples][0]!.value;
  };
  const failMore = async () => {
    const before = countFailures();
    await waitFor(() => countFailures() >= before + 3, "more failures");
  };
  follower.start();
  nowMs = 60_000;
  await failMore();
  assert.equal(lines.length, 0);
  nowMs = 90_000;
  await failMore();
  assert.equal(lines.length, 1);
  assert.equal(lines[0]!.level, "warn");
});

test("an outage of ten seconds is a warning of readiness", () => {
  let nowMs = 0;
  const follower = new RevocationFollower({
    url: "http://127.0.0.1:1/",
    token: TOKEN,
    revocations: new RevocationSet(ISSUER),
    onAdded: () => undefined,
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    log: createLogger({ service: "test", write: () => undefined }),
    intervalMs: 3_600_000,
  });
  follower.start();
  nowMs = 9_999;
  assert.equal(follower.describe(), undefined);
  nowMs = 12_000;
  assert.match(follower.describe()!, /not been read for 12 s/);
  return follower.stop();
});

test("a feed that does not answer is given up after the timeout, one request at a time", async (t) => {
  let open = 0;
  let most = 0;
  const { feed, revocations, read } = await follow(t, (request) => {
    open += 1;
    most = Math.max(most, open);
    request.socket.once("close", () => void (open -= 1));
  });
  await waitFor(() => read("platform_revocations_failures_total") >= 2, "failures");
  // The server may see the end of one request after the start of the next.
  assert.ok(most <= 2, `${most} requests at a time`);
  feed.answer = createFeed({ last: 1 });
  await waitFor(() => has(revocations, "s1"), "the entry");
});

const lies: [name: string, answer: Answer][] = [
  ["no JSON", (_request, response) => send(response, "<html>")],
  ["null", (_request, response) => send(response, null)],
  ["no list", (_request, response) => send(response, { revocations: {}, next: 1 })],
  [
    "a position below the own",
    (_request, response) => send(response, { revocations: [], next: -1 }),
  ],
  [
    "a position that is no number",
    (_r, response) => send(response, { revocations: [], next: "9" }),
  ],
  [
    "too many entries",
    (_request, response) => {
      const entry = { kind: "sid", value: "x", expires_at: FAR };
      send(response, { revocations: Array.from({ length: 1_001 }, () => entry), next: 1_001 });
    },
  ],
  ["a refusal", (_request, response) => send(response, { error: "invalid_token" }, 401)],
  [
    "a redirect",
    (_request, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  ],
  ["too many bytes", (_request, response) => send(response, `{"a":"${"x".repeat(1_100_000)}"}`)],
];
for (const [name, answer] of lies) {
  test(`a feed that sends ${name} changes nothing and is reported`, async (t) => {
    const { revocations, read, lines, feed } = await follow(t, answer);
    await waitFor(() => read("platform_revocations_failures_total") > 0, "a failure");
    assert.equal(revocations.size, 0);
    assert.ok(lines.some(({ level }) => level === "warn"));
    assert.equal(feed.asked[0], "/revocations?since=0");
    feed.answer = createFeed({ last: 1 });
    await waitFor(() => has(revocations, "s1"), "the entry");
  });
}

test("entries of an unknown form are skipped and counted, the others apply", async (t) => {
  const entries = [
    { kind: "device", value: "d", expires_at: FAR },
    { kind: "sid", value: 7, expires_at: FAR },
    { kind: "sid", value: "x".repeat(2_000), expires_at: FAR },
    { kind: "sub", value: "u1", expires_at: FAR },
    null,
    { kind: "sid", value: "good", expires_at: FAR },
  ];
  const { revocations, read } = await follow(t, (request, response) => {
    const since = new URL(request.url!, "http://-").searchParams.get("since");
    send(response, { revocations: since === "0" ? entries : [], next: 6, latest: 6 });
  });
  await waitFor(() => has(revocations, "good"), "the entry");
  assert.equal(read("platform_revocations_skipped_total"), 5);
  assert.equal(revocations.size, 1);
});

test("a feed that never ends is read in turns, within the bound of the set", async (t) => {
  const { revocations, feed, read } = await follow(t, createFeed({ last: 9_000_000 }), 5_000);
  await waitFor(() => read("platform_revocations_dropped_total") > 100_000, "dropped entries");
  assert.equal(revocations.size, 5_000);
  assert.ok(feed.asked.length > 100);
});

test("after identity was restored from a backup, the feed is read from the start", async (t) => {
  const state = { last: 50 };
  const { revocations, feed } = await follow(t, createFeed(state));
  await waitFor(() => has(revocations, "s50"), "the entries");
  state.last = 3;
  await waitFor(() => feed.asked.lastIndexOf("/revocations?since=0") > 0, "a read from the start");
  state.last = 4;
  await waitFor(
    () => feed.asked.includes("/revocations?since=4"),
    "the position after the restore",
  );
  assert.ok(has(revocations, "s50"), "what was known stays revoked");
});
