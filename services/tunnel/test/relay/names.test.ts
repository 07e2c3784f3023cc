// Names and their owners: subjects, tokens, quotas, reservations, take-over, custom domains.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  Cleanup,
  send,
  startLocal,
  startTestClient,
  startTestRelay,
  type RelayStage,
} from "../fixture/stage.ts";
import type { TunnelOffer, Welcome } from "../../src/frame/messages.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const ALICE = "alice-token-1";
const BOB = "bob-token-22";
const OPERATOR = "operator-token-333";

const cleanup = new Cleanup();
let relay: RelayStage;
let local = 0;
const records = new Map<string, string>();

before(async () => {
  relay = await startTestRelay(
    cleanup,
    {
      auth_token: `alice:${ALICE}, bob:${BOB}, ${OPERATOR}`,
      jwt_secret: SECRET,
      names_per_subject_max: 3,
      clients_per_subject_max: 5,
    },
    {
      lookUpTxt: async (name) => {
        const value = records.get(name);
        if (value === undefined) throw Object.assign(new Error("none"), { code: "ENOTFOUND" });
        return [[value]];
      },
    },
  );
  local = await startLocal(cleanup, (request, response) => response.end(request.headers.host));
});
after(() => cleanup.run());

function signJwt(claims: Record<string, unknown>): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const content = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${content}.${createHmac("sha256", SECRET).update(content).digest("base64url")}`;
}

const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

async function open(token: string, offer: Partial<TunnelOffer>, key?: string) {
  const stage = await startTestClient(cleanup, {
    port: relay.port,
    token,
    tunnels: [{ target: `127.0.0.1:${local}`, ...offer }],
    ...(key === undefined ? {} : { key }),
  });
  return { ...stage, grant: stage.welcomes[0]?.tunnels[0] };
}

function urlOf(grant: Welcome["tunnels"][number] | undefined): string {
  assert.ok(grant !== undefined && "url" in grant, JSON.stringify(grant));
  return grant.url;
}

function errorOf(grant: Welcome["tunnels"][number] | undefined): string {
  assert.ok(grant !== undefined && "error" in grant, JSON.stringify(grant));
  return grant.error.detail;
}

async function api(token: string, method: string, path: string, body?: unknown) {
  const response = await send({
    port: relay.port,
    host: "localhost",
    path,
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = response.body.toString();
  return { ...response, json: text === "" ? undefined : JSON.parse(text) };
}

test("a client without a token or with a wrong one is refused, and told why", async () => {
  const none = await startTestClient(cleanup, {
    port: relay.port,
    tunnels: [{ target: `127.0.0.1:${local}` }],
  });
  assert.match(none.refusals[0]!, /bearer token is required.*401/i);
  const wrong = await open("wrong-token-here", {});
  assert.match(wrong.refusals[0]!, /401/);
});

test("a JWT opens a tunnel for its subject, and the connection closes when it expires", async () => {
  const token = signJwt({ sub: "carol", exp: nowSeconds() + 2 });
  const carol = await open(token, { subdomain: "carols" });
  assert.equal(urlOf(carol.grant), `http://carols.localhost:${relay.port}`);
  await waitFor(() => carol.refusals.length > 0);
  assert.match(carol.refusals[0]!, /token has expired/);
  const response = await send({ port: relay.port, host: "carols.localhost" });
  assert.equal(response.status, 502);
  assert.equal(response.headers["x-platform-tunnel-error"], "tunnel_offline");
});

test("generated names are two words and a number, and come back to the same client", async () => {
  const key = "k".repeat(43);
  const first = await open(ALICE, {}, key);
  const url = urlOf(first.grant);
  assert.match(url, /^http:\/\/[a-z]+-[a-z]+-\d{4}\.localhost:/);
  const second = await open(ALICE, {}, key);
  assert.notEqual(urlOf(second.grant), url, "the first client is still there");
  await first.client.stop(0);
  await second.client.stop(0);
  const again = await open(ALICE, {}, key);
  assert.equal([url, urlOf(second.grant)].includes(urlOf(again.grant)), true);
  const other = await open(ALICE, {}, "o".repeat(43));
  assert.equal([url, urlOf(second.grant)].includes(urlOf(other.grant)), false);
  await again.client.stop(0);
  await other.client.stop(0);
});

test("a name belongs to its subject, also while its client is away", async () => {
  const alice = await open(ALICE, { subdomain: "shop" });
  assert.equal(urlOf(alice.grant), `http://shop.localhost:${relay.port}`);
  const bob = await open(BOB, { subdomain: "shop" });
  assert.match(errorOf(bob.grant), /shop is taken/);
  await alice.client.stop(0);
  await waitFor(
    async () => (await send({ port: relay.port, host: "shop.localhost" })).status === 502,
  );
  const late = await open(BOB, { subdomain: "shop" });
  assert.match(errorOf(late.grant), /shop is taken/);
  // Another installation of the owner takes a disconnected name at once.
  const moved = await open(ALICE, { subdomain: "shop" }, "m".repeat(43));
  assert.equal(urlOf(moved.grant), `http://shop.localhost:${relay.port}`);
  const twin = await open(ALICE, { subdomain: "shop" }, "t".repeat(43));
  assert.match(errorOf(twin.grant), /served by another client/);
  await Promise.all([moved, bob, late, twin].map(({ client }) => client.stop(0)));
});

const LABELS = [
  "-edge",
  "edge-",
  "UPPER",
  "a.b",
  "with space",
  "xn--mnchen-3ya",
  "www",
  "api",
  "ünicode",
];

for (const subdomain of LABELS) {
  test(`the subdomain ${JSON.stringify(subdomain)} is refused with the reason`, async () => {
    const stage = await open(BOB, { subdomain });
    assert.match(errorOf(stage.grant), /subdomain/i);
    await stage.client.stop(0);
  });
}

test("a subject holds a limited number of names; deleting one makes room", async () => {
  for (const subdomain of ["one", "two", "three"]) {
    const created = await api(BOB, "POST", "/api/v1/tunnels", { subdomain });
    assert.equal(created.status, 201);
  }
  const full = await api(BOB, "POST", "/api/v1/tunnels", { subdomain: "four" });
  assert.equal(full.status, 403);
  assert.match(full.json.detail, /at most 3 names/);
  const list = await api(BOB, "GET", "/api/v1/tunnels");
  const { id } = list.json.tunnels.find(
    (tunnel: { subdomain: string }) => tunnel.subdomain === "two",
  );
  assert.equal((await api(BOB, "DELETE", `/api/v1/tunnels/${id}`)).status, 204);
  assert.equal((await api(BOB, "POST", "/api/v1/tunnels", { subdomain: "four" })).status, 201);
});

test("a reservation has the specified form, and only a client with its target serves it", async () => {
  const target = `127.0.0.1:${local}`;
  const created = await api(ALICE, "POST", "/api/v1/tunnels", {
    subdomain: "reserved",
    target,
    auth_required: false,
  });
  assert.equal(created.status, 201);
  const { id, url, status, created_at: createdAt, connected } = created.json;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(url, `http://reserved.localhost:${relay.port}`);
  assert.equal(status, "active");
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.equal(connected, false);
  const other = await open(ALICE, { subdomain: "reserved", target: "127.0.0.1:1" });
  assert.match(errorOf(other.grant), /reserved for the target/);
  const served = await open(ALICE, { subdomain: "reserved" });
  assert.equal(urlOf(served.grant), url);
  assert.equal((await api(ALICE, "GET", `/api/v1/tunnels/${id}`)).json.connected, true);
  const deleted = await api(ALICE, "DELETE", `/api/v1/tunnels/${id}`);
  assert.equal(deleted.status, 204);
  await waitFor(() => served.refusals.length > 0);
  assert.match(served.refusals[0]!, /deleted/);
  assert.equal((await send({ port: relay.port, host: "reserved.localhost" })).status, 404);
  await other.client.stop(0);
});

test("tunnels of others look as if they did not exist, except to operators and administrators", async () => {
  const created = await api(ALICE, "POST", "/api/v1/tunnels", { subdomain: "private-one" });
  const { id } = created.json;
  assert.equal((await api(BOB, "GET", `/api/v1/tunnels/${id}`)).status, 404);
  assert.equal((await api(BOB, "DELETE", `/api/v1/tunnels/${id}`)).status, 404);
  assert.equal((await api(OPERATOR, "GET", `/api/v1/tunnels/${id}`)).status, 200);
  const admin = signJwt({ sub: "root", exp: nowSeconds() + 60, scope: "tunnel:admin" });
  const role = signJwt({ sub: "eve", exp: nowSeconds() + 60, roles: ["admin"], scope: "openid" });
  assert.equal((await api(role, "GET", `/api/v1/tunnels/${id}`)).status, 404);
  const all = await api(admin, "GET", "/api/v1/tunnels");
  assert.ok(all.json.tunnels.some((tunnel: { id: string }) => tunnel.id === id));
  const own = await api(BOB, "GET", "/api/v1/tunnels");
  assert.ok(own.json.tunnels.every((tunnel: { subject: string }) => tunnel.subject === "bob"));
});

test("an operator cuts a subject off: its clients end, and come back only when it is readmitted", async () => {
  const token = signJwt({ sub: "mallory", exp: nowSeconds() + 600 });
  const mallory = await open(token, { subdomain: "spam" });
  urlOf(mallory.grant);
  assert.equal((await api(ALICE, "PUT", "/api/v1/subjects/mallory/cut-off", {})).status, 403);
  const cut = await api(OPERATOR, "PUT", "/api/v1/subjects/mallory/cut-off", {
    reason: "phishing",
  });
  assert.equal(cut.status, 200);
  await waitFor(() => mallory.refusals.length > 0);
  assert.match(mallory.refusals[0]!, /phishing/);
  assert.match((await open(token, {})).refusals[0]!, /cut off/);
  const list = await api(OPERATOR, "GET", "/api/v1/tunnels");
  const spam = list.json.tunnels.find(
    (tunnel: { subdomain: string }) => tunnel.subdomain === "spam",
  );
  assert.equal(spam.status, "inactive");
  assert.equal((await api(OPERATOR, "DELETE", "/api/v1/subjects/mallory/cut-off")).status, 204);
  urlOf((await open(token, { subdomain: "spam" })).grant);
});

test("a subject has a limited number of connected clients", async () => {
  const token = signJwt({ sub: "crowd", exp: nowSeconds() + 600 });
  const clients = [];
  for (let count = 0; count < 5; count++) clients.push(await open(token, {}));
  const late = await startTestClient(cleanup, {
    port: relay.port,
    token,
    tunnels: [{ target: "127.0.0.1:1" }],
  });
  assert.match(late.losses[0] ?? "", /at most 5 connected clients/);
});

test("a custom domain is served after its TXT record proves it", async () => {
  const domain = "app.customer.example";
  const refused = await open(ALICE, { subdomain: "branded", custom_domain: domain });
  const detail = errorOf(refused.grant);
  const found = /TXT record (\S+) with the value (\S+)\./.exec(detail);
  assert.ok(found !== null, detail);
  assert.equal(found[1], `_platform-tunnel.${domain}`);
  await refused.client.stop(0);
  assert.equal((await send({ port: relay.port, host: domain })).status, 404);
  records.set(found[1], found[2]!);
  const served = await open(ALICE, {
    subdomain: "branded",
    custom_domain: domain,
    host_header: "preserve",
  });
  assert.equal(urlOf(served.grant), `http://${domain}:${relay.port}`);
  const response = await send({ port: relay.port, host: domain });
  assert.equal(response.body.toString(), domain);
  // The proof is bound to the subject: another one cannot use it.
  const thief = await open(BOB, { custom_domain: domain });
  assert.match(errorOf(thief.grant), /not proven/);
});

test("public requests need the credentials that the client has set", async () => {
  const dora = signJwt({ sub: "dora", exp: nowSeconds() + 600 });
  await open(dora, { subdomain: "basic", share_auth: "user:pass word" });
  const host = "basic.localhost";
  const none = await send({ port: relay.port, host });
  assert.equal(none.status, 401);
  assert.match(none.headers["www-authenticate"]!, /^Basic /);
  const authorization = `Basic ${Buffer.from("user:pass word").toString("base64")}`;
  assert.equal((await send({ port: relay.port, host, headers: { authorization } })).status, 200);
  await open(dora, { subdomain: "bearer", auth_required: true });
  const bearer = (token: string) =>
    send({
      port: relay.port,
      host: "bearer.localhost",
      headers: { authorization: `Bearer ${token}` },
    });
  assert.equal((await send({ port: relay.port, host: "bearer.localhost" })).status, 401);
  assert.equal((await bearer("wrong-token-here")).status, 401);
  assert.equal((await bearer(BOB)).status, 200);
});

// Last: this address is refused afterwards.
test("guessing is throttled, also for the right token", async () => {
  let status = 0;
  for (let count = 0; count < 40 && status !== 429; count++) {
    const stage = await startTestClient(cleanup, {
      port: relay.port,
      token: `guess-number-${count}`,
      tunnels: [{ target: "127.0.0.1:1" }],
    });
    const reason = stage.refusals[0] ?? stage.losses[0] ?? "";
    if (reason.includes("429")) status = 429;
    await stage.client.stop(0);
  }
  assert.equal(status, 429);
  const authorization = `Basic ${Buffer.from("user:pass word").toString("base64")}`;
  const right = await send({
    port: relay.port,
    host: "basic.localhost",
    headers: { authorization },
  });
  assert.equal(right.status, 429);
  assert.ok(Number(right.headers["retry-after"]) > 0);
});
