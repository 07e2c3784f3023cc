// Grants without the core's pipeline: the same requests on both paths. A repeated parameter that no grant reads is
// ignored by the core (RFC 6749 section 3.2 forbids only repeating its own), and sends a request there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "@platform/kernel/time";
import { TokenPolicy } from "../../src/oauth/token/policy.ts";
import { createRbac, type Rbac, type Rights } from "../../src/rbac/rights.ts";
import { onEachDatabase } from "../databases.ts";
import { bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  basic,
  CALLBACK,
  obtainCode,
  obtainTokens,
  post,
  readClaims,
  register,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

const TO_CORE = "&unread=1&unread=2";
const HEADERS = [
  "access-control-allow-origin",
  "access-control-expose-headers",
  "cache-control",
  "content-type",
  "pragma",
  "referrer-policy",
  "retry-after",
  "vary",
  "www-authenticate",
  "x-content-type-options",
];

interface Attempt {
  name: string;
  form: Record<string, string> | string;
  headers?: Record<string, string>;
  as?: TestClient;
}

interface Stage {
  host: Host;
  /** A client with a role and all scopes. */
  client: TestClient;
  send: (attempt: Attempt, more?: string) => Promise<Answer>;
  /** Sends the request on both paths and compares the responses; returns that of the direct one. */
  compare: (attempt: Attempt) => Promise<Answer>;
  /** The same for a request that both must grant. */
  compareGranted: (attempt: Attempt) => Promise<Answer>;
  advance: (ms: number) => void;
}

onEachDatabase((makeUrl) => {
  let stage: Stage;
  before(async () => {
    stage = await openStage(await makeUrl());
  });
  after(() => stage.host.close());

  test("client_credentials: both paths grant the same", () => grantClients(stage));
  test("pages at the client's origin may read the response, others may not", () =>
    servePages(stage));
  test("client_credentials: both paths reject the same", () => rejectClients(stage));
  test("refresh_token: both paths grant the same, down to the successor", () =>
    refreshAlike(stage));
  test("refresh_token: public clients and the service's own sign-in are served alike", () =>
    refreshPublic(stage));
  test("refresh_token: both paths reject the same", () => rejectRefreshes(stage));
  test("concurrent requests read a client's rights once, and a failed read is repeated", () =>
    shareReads(stage));
  test("refresh_token: of a disabled user, a revoked grant, a used family, and with a lost race", () =>
    refuseRevoked(stage));
});

async function openStage(url: string): Promise<Stage> {
  let aheadMs = 0;
  let grantedByCore = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const host = await startHost({ url, clock });
  host.oauth.dispatcher.provider.on("grant.success", () => void (grantedByCore += 1));
  const client = await register(host, {
    acting_roles: ["reader"],
    platform_audience: "requested",
  });
  await bindClient(host, client.client_id);
  const send = async ({ form, headers, as }: Attempt, more = ""): Promise<Answer> => {
    const text = typeof form === "string" ? form : new URLSearchParams(form).toString();
    return post(host, "/api/v1/auth/token", text + more, {
      ...(as === undefined ? {} : { as }),
      ...(headers === undefined ? {} : { headers }),
    });
  };
  const compare = async (attempt: Attempt): Promise<Answer> => {
    const [direct, core] = [await send(attempt), await send(attempt, TO_CORE)];
    assert.deepEqual(describe(direct), describe(core), attempt.name);
    return direct;
  };
  const compareGranted = async (attempt: Attempt): Promise<Answer> => {
    const before = grantedByCore;
    const answer = await compare(attempt);
    assert.equal(answer.status, 200, `${attempt.name} ${JSON.stringify(answer.body)}`);
    assert.equal(grantedByCore, before + 1, `${attempt.name}: one of the two by the core`);
    return answer;
  };
  const advance = (ms: number): void => void (aheadMs += ms);
  return { host, client, send, compare, compareGranted, advance };
}

async function grantClients({ host, client, send, compareGranted }: Stage): Promise<void> {
  const form = { grant_type: "client_credentials" };
  const posted = await register(host, { token_endpoint_auth_method: "client_secret_post" });
  const unlisted = await register(host, { scope: undefined });
  const authorization = basic(client);
  const attempts: Attempt[] = [
    { name: "no scope", form, as: client },
    { name: "one scope", form: { ...form, scope: "orders.read" }, as: client },
    { name: "scope twice", form: { ...form, scope: "orders.read orders.read" }, as: client },
    { name: "unknown scope", form: { ...form, scope: "orders.read x.y" }, as: client },
    { name: "scope of users", form: { ...form, scope: "openid orders.write" }, as: client },
    { name: "empty scope", form: { ...form, scope: "" }, as: client },
    { name: "resource", form: { ...form, resource: "https://api.example/v1" }, as: client },
    { name: "issuer", form: { ...form, resource: host.issuer }, as: client },
    { name: "platform", form: { ...form, resource: "urn:platform" }, as: client },
    { name: "secret in the form", form: { ...form, ...posted } },
    { name: "the other way of sending a secret", form, as: posted },
    { name: "client without a list", form, as: unlisted },
    { name: "client_id also", form: { ...form, client_id: client.client_id }, as: client },
    {
      name: "lower-case scheme",
      form,
      headers: { authorization: authorization.replace("B", "b") },
    },
    { name: "no padding", form, headers: { authorization: authorization.replace(/=+$/, "") } },
    {
      name: "charset",
      form,
      as: client,
      headers: { "content-type": "application/x-www-form-urlencoded; charset=UTF-8" },
    },
    { name: "accepts anything", form, as: client, headers: { accept: "application/json, */*" } },
    { name: "unread parameter", form: { ...form, code: "x", refresh_token: "y" }, as: client },
  ];
  for (const attempt of attempts) await compareGranted(attempt);
  const token = await send({ name: "", form: { ...form, resource: "urn:platform" }, as: client });
  const { aud, scope, roles, sub } = readClaims(String(token.body["access_token"]));
  assert.deepEqual(
    { aud, scope, roles, sub },
    {
      aud: "platform",
      scope: "orders.read",
      roles: ["reader"],
      sub: client.client_id,
    },
  );
}

async function servePages({ client, compareGranted }: Stage): Promise<void> {
  const form = { grant_type: "client_credentials" };
  for (const origin of [new URL(CALLBACK).origin, "https://elsewhere.example", "null"]) {
    await compareGranted({ name: origin, form, as: client, headers: { origin } });
  }
}

async function rejectClients({ host, client, send, compare }: Stage): Promise<void> {
  const form = { grant_type: "client_credentials" };
  const clients = {
    client,
    bound: await register(host, { dpop_bound_access_tokens: true }),
    narrow: await register(host, { scope: "orders.read" }),
    user: await register(host, { grant_types: ["authorization_code"] }),
    open: await register(host, { token_endpoint_auth_method: "none" }),
  };
  const attempts = [...listBadClients(clients), ...listBadParameters(clients)];
  for (const [status, error, attempt] of attempts) {
    const answer = await send(attempt);
    const found = [answer.status, answer.body["error"]];
    if (attempt.name !== "assertion") assert.deepEqual(found, [status, error], attempt.name);
    else assert.ok(answer.status >= 400, "assertion");
    await compare(attempt);
  }
  const page = { name: "page", form, headers: { accept: "text/html" } };
  assert.match((await compare(page)).headers.get("content-type") ?? "", /^text\/html/);
}

async function refreshAlike({ host, client, compare, compareGranted }: Stage): Promise<void> {
  const claims = JSON.stringify({ userinfo: { name: null }, id_token: { email: null } });
  const named = JSON.stringify({ userinfo: { picture: null } });
  const flows: [name: string, params: Record<string, string>, more: Record<string, string>][] = [
    ["all scopes", { nonce: "n" }, {}],
    ["a narrower scope", {}, { scope: "orders.read" }],
    ["only openid", {}, { scope: "openid" }],
    ["an unread parameter", {}, { code: "x", redirect_uri: CALLBACK }],
    ["a resource", { resource: "https://api.example/v1" }, { resource: "https://api.example/v1" }],
    ["the platform", { resource: "urn:platform" }, {}],
    ["claims of userinfo", { claims: named }, {}],
    ["without openid", { scope: "offline_access orders.read" }, {}],
  ];
  for (const [name, params, more] of flows) {
    const { refresh_token } = await obtainTokens(host, client, params);
    const form = { grant_type: "refresh_token", refresh_token, ...more };
    const answer = await compareGranted({ name, form, as: client });
    assert.notEqual(answer.body["refresh_token"], refresh_token, name);
  }
  const { refresh_token } = await obtainTokens(host, client, { claims });
  const form = { grant_type: "refresh_token", refresh_token };
  const { body } = await compare({ name: "claims of the ID token", form, as: client });
  assert.equal(readClaims(String(body["id_token"]))["email"], "ada@example.com");
}

async function refreshPublic({ host, send, compare, compareGranted }: Stage): Promise<void> {
  const open = await register(host, { token_endpoint_auth_method: "none" });
  const { client_id } = open;
  const code = await obtainCode(host, open);
  const got = await send({ name: "code", form: { ...code, client_id } });
  const mine = { grant_type: "refresh_token", client_id };
  const usable = { ...mine, refresh_token: String(got.body["refresh_token"]) };
  await compareGranted({ name: "public client", form: usable });
  const session = await host.signIn();
  const login = await host.oauth.loginTokens.mint(await host.findAccount(), session);
  const { refresh_token } = login;
  const form = { grant_type: "refresh_token", refresh_token, client_id: "platform" };
  const answer = await compareGranted({ name: "sign-in", form });
  const { aud, sid, roles } = readClaims(String(answer.body["access_token"]));
  assert.deepEqual({ aud, sid, roles }, { aud: "platform", sid: session.id, roles: ["reader"] });
  await compare({ name: "another client", form: { ...form, client_id } });
}

async function rejectRefreshes({ host, client, compare }: Stage): Promise<void> {
  const other = await register(host);
  const { refresh_token } = await obtainTokens(host, client);
  const form = { grant_type: "refresh_token", refresh_token };
  const attempts: [error: string, attempt: Attempt][] = [
    ["invalid_request", { name: "no token", form: { grant_type: "refresh_token" }, as: client }],
    ["invalid_grant", { name: "unknown", form: { ...form, refresh_token: "x" }, as: client }],
    ["invalid_grant", { name: "another client", form, as: other }],
    ["invalid_scope", { name: "more", form: { ...form, scope: "openid other" }, as: client }],
    ["invalid_scope", { name: "characters", form: { ...form, scope: 'a"b' }, as: client }],
    ["invalid_dpop_proof", { name: "bad proof", form, as: client, headers: { dpop: "x" } }],
  ];
  for (const [error, attempt] of attempts) {
    const { status, body } = await compare(attempt);
    assert.deepEqual([status, body["error"]], [400, error], attempt.name);
  }
  const elsewhere = { ...form, resource: "https://elsewhere.example" };
  const { body } = await compare({ name: "another resource", form: elsewhere, as: client });
  assert.equal(body["error"], "invalid_target");
}

async function shareReads({ host, client }: Stage): Promise<void> {
  const rbac = createRbac(host.database);
  const reads: string[] = [];
  let isOffline = true;
  const findRights: Rbac["findRights"] = async (subject) => {
    reads.push(subject.id);
    if (isOffline) throw new Error("offline");
    return rbac.findRights(subject);
  };
  const policy = new TokenPolicy({ ...rbac, findRights }, systemClock);
  const ask = (): Promise<PromiseSettledResult<Rights>[]> =>
    Promise.allSettled([1, 2, 3].map(() => policy.findClientRights(client.client_id)));
  assert.deepEqual(new Set((await ask()).map(({ status }) => status)), new Set(["rejected"]));
  assert.equal(reads.length, 1);
  isOffline = false;
  const [first, ...others] = await ask();
  assert.deepEqual(first?.status === "fulfilled" && first.value.roles, ["reader"]);
  for (const other of others) assert.deepEqual(other, first);
  assert.equal(reads.length, 2);
}

async function refuseRevoked({ host, client, send, compare, advance }: Stage): Promise<void> {
  const refuse = async (refresh_token: string): Promise<void> => {
    const form = { grant_type: "refresh_token", refresh_token };
    const { body } = await compare({ name: "", form, as: client });
    assert.equal(body["error"], "invalid_grant");
  };
  const setDisabled = (disabled: number): Promise<unknown> =>
    host.database.db
      .updateTable("auth_users")
      .set({ disabled })
      .where("id", "=", USER_ID)
      .execute();
  const tokens = await obtainTokens(host, client);
  await setDisabled(1);
  await refuse(tokens.refresh_token);
  await setDisabled(0);
  const form = { grant_type: "refresh_token", refresh_token: tokens.refresh_token };
  const race = await Promise.all([1, 2, 3].map(() => send({ name: "", form, as: client })));
  const successors = new Set(race.map(({ body }) => body["refresh_token"]));
  assert.equal(successors.size, 1, "repeats within the grace period have one successor");
  advance(31_000);
  await refuse(tokens.refresh_token);
  await refuse(String([...successors][0]));
  const revoked = await obtainTokens(host, client);
  await host.oauth.grants.revoke(USER_ID, client.client_id);
  await refuse(revoked.refresh_token);
}

type Rejected = [status: number, error: string, attempt: Attempt];
type Clients = Record<"client" | "bound" | "narrow" | "user" | "open", TestClient>;

function listBadClients({ client, bound, user, open }: Clients): Rejected[] {
  const form = { grant_type: "client_credentials" };
  const authorization = basic(client);
  const sent = (given: string): Attempt => ({
    name: `authorization: ${given}`,
    form,
    headers: { authorization: given },
  });
  return [
    [401, "invalid_client", { name: "no client", form }],
    [401, "invalid_client", { name: "wrong secret", form, as: { ...client, client_secret: "x" } }],
    [401, "invalid_client", { name: "no secret", form: { ...form, client_id: client.client_id } }],
    [400, "invalid_request", { name: "two mechanisms", form: { ...form, ...client }, as: client }],
    [400, "invalid_request", { name: "two ids", form: { ...form, client_id: "x" }, as: client }],
    [400, "invalid_request", sent(`Basic  ${authorization.slice(6)}`)],
    [400, "invalid_request", sent(`${authorization}=====`)],
    [400, "invalid_request", sent("Basic !")],
    [400, "invalid_request", sent("Bearer x")],
    [400, "invalid_request", sent(`Basic ${Buffer.from("%zz:x").toString("base64")}`)],
    [400, "unauthorized_client", { name: "grant type", form, as: user }],
    [400, "invalid_grant", { name: "proof required", form, as: bound }],
    [400, "invalid_dpop_proof", { name: "bad proof", form, as: client, headers: { dpop: "x" } }],
    [
      400,
      "invalid_request",
      { name: "attestation", form, as: client, headers: { "oauth-client-attestation": "x" } },
    ],
    [
      401,
      "invalid_client",
      {
        name: "assertion",
        form: { ...form, client_assertion: "a.e30.c", client_id: open.client_id },
      },
    ],
  ];
}

function listBadParameters({ client, narrow }: Clients): Rejected[] {
  const form = { grant_type: "client_credentials" };
  const text = "grant_type=client_credentials";
  return [
    [400, "invalid_request", { name: "two scopes", form: `${text}&scope=a&scope=b`, as: client }],
    [400, "invalid_request", { name: "two types", form: `${text}&${text}`, as: client }],
    [400, "invalid_scope", { name: "characters", form: { ...form, scope: 'a"b' }, as: client }],
    [400, "invalid_scope", { name: "spaces", form: { ...form, scope: "a  b" }, as: client }],
    [
      400,
      "invalid_scope",
      { name: "foreign", form: { ...form, scope: "orders.write" }, as: narrow },
    ],
    [400, "invalid_target", { name: "relative", form: { ...form, resource: "/x" }, as: client }],
    [
      400,
      "invalid_target",
      { name: "fragment", form: { ...form, resource: "urn:x#y" }, as: client },
    ],
    [
      400,
      "invalid_target",
      { name: "platform", form: { ...form, resource: "urn:platform" }, as: narrow },
    ],
    [
      400,
      "invalid_target",
      { name: "two resources", form: `${text}&resource=urn:a&resource=urn:b`, as: client },
    ],
    [400, "unsupported_grant_type", { name: "unknown", form: { grant_type: "magic" }, as: client }],
    [
      400,
      "invalid_request",
      {
        name: "not a form",
        form: "{}",
        as: client,
        headers: { "content-type": "application/json" },
      },
    ],
  ];
}

function describe({ status, headers, body }: Answer): unknown {
  const { access_token, id_token, ...rest } = body;
  // Without a page, a permission for every page says nothing.
  const hasPage = (headers.get("access-control-allow-origin") ?? "*") !== "*";
  const compared = HEADERS.filter((name) => hasPage || !name.startsWith("access-control-"));
  return {
    status,
    headers: Object.fromEntries(compared.map((name) => [name, headers.get(name)])),
    members: Object.keys(body),
    rest: typeof rest["text"] === "string" ? "text" : rest,
    access: describeJwt(access_token),
    id: describeJwt(id_token),
  };
}

function describeJwt(token: unknown): unknown {
  if (typeof token !== "string") return token;
  const { jti, iat, exp, ...claims } = readClaims(token);
  const life = Number(exp) - Number(iat);
  const header = JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as unknown;
  return { header, claims, names: Object.keys(readClaims(token)), life, hasId: jti !== undefined };
}
