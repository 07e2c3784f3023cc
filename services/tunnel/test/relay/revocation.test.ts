// Tokens that the identity service revokes: what they opened ends, and they open nothing more.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const ISSUER = "https://identity.example.net";
const FEED_TOKEN = "feed-token";

interface Entry {
  kind: "sid" | "sub" | "jti";
  value: string;
  epoch?: number;
  expires_at: number;
}

const cleanup = new Cleanup();
const entries: Entry[] = [];
let port = 0;
let local = 0;

before(async () => {
  const feed = await startLocal(cleanup, (request, response) => {
    const isOwn = request.headers.authorization === `Bearer ${FEED_TOKEN}`;
    const since = Number(new URL(request.url ?? "/", "http://feed").searchParams.get("since") ?? 0);
    const page = { revocations: entries.slice(since), next: entries.length };
    response.statusCode = isOwn ? 200 : 401;
    response.setHeader("Content-Type", "application/json").end(JSON.stringify(page));
  });
  ({ port } = await startTestRelay(cleanup, {
    jwt_secret: SECRET,
    jwt_issuer: ISSUER,
    revocations_url: `http://127.0.0.1:${feed}/revocations`,
    revocations_token: FEED_TOKEN,
  }));
  local = await startLocal(cleanup, (_request, response) => response.end("served"));
});
after(() => cleanup.run());

const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

function signToken(claims: Record<string, unknown>): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const all = { iss: ISSUER, exp: nowSeconds() + 600, ...claims };
  const content = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(all)}`;
  return `${content}.${createHmac("sha256", SECRET).update(content).digest("base64url")}`;
}

async function open(subdomain: string, token: string) {
  return startTestClient(cleanup, {
    port,
    token,
    key: `key-of-the-client-of-${subdomain}-000`,
    tunnels: [{ target: `127.0.0.1:${local}`, subdomain }],
  });
}

async function visit(subdomain: string): Promise<number> {
  return (await send({ port, host: `${subdomain}.localhost` })).status;
}

test("a session that ends takes its tunnels with it, and no others", async () => {
  const revoked = signToken({ sub: "alice", sid: "session-1" });
  const first = await open("first", revoked);
  const second = await open("second", signToken({ sub: "alice", sid: "session-2" }));
  assert.deepEqual([await visit("first"), await visit("second")], [200, 200]);
  entries.push({ kind: "sid", value: "session-1", expires_at: nowSeconds() + 600 });
  await waitFor(() => first.refusals.length > 0);
  assert.match(first.refusals.join(), /revoked/);
  assert.deepEqual([await visit("first"), await visit("second")], [502, 200]);
  assert.deepEqual(second.losses, []);
  const again = await open("first", revoked);
  assert.match(again.refusals.join(), /401/);
  const answer = await send({
    port,
    host: "localhost",
    path: "/api/v1/tunnels",
    headers: { authorization: `Bearer ${revoked}` },
  });
  assert.equal(answer.status, 401);
});

test("a user whose tokens are revoked loses all tunnels, and gets them back with a new token", async () => {
  const tokenOf = (epoch: number) => signToken({ sub: "bob", epoch });
  const clients = [await open("one", tokenOf(1)), await open("two", tokenOf(1))];
  entries.push({ kind: "sub", value: "bob", epoch: 2, expires_at: nowSeconds() + 600 });
  await waitFor(() => clients.every(({ refusals }) => refusals.length > 0));
  assert.deepEqual([await visit("one"), await visit("two")], [502, 502]);
  await open("one", tokenOf(2));
  assert.equal(await visit("one"), 200);
});
