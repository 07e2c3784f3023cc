// API keys, policy and revocation at the real gateway: management, requests, open streams, and a restart after kill -9.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { runtimesOfRules } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate, type StartedGate as Gate } from "../fixture/shared-gate.ts";

const TOKEN = "the-operator-token-of-this-test";
const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const operator = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
/** Any JSON object or list of the API. */
type Json = Record<string, unknown> & { length?: number };

/** An upstream that returns the fields it got, and sends events below /events. */
async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (!request.url?.includes("events")) {
      response.end(JSON.stringify({ ...request.headers, url: request.url }));
      return;
    }
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("data: open\n\n");
  });
  return await serve(context, server);
}

async function send(gate: Gate, method: string, path: string, body?: unknown) {
  const answer = await fetch(`${gate.url}${path}`, {
    method,
    headers: operator,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: (await answer.json()) as Json };
}

async function ask(gate: Gate, path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(`${gate.url}${path}`, { headers });
  const json = (await answer.json()) as Json;
  return { status: answer.status, headers: answer.headers, json };
}

async function createKey(gate: Gate, wanted: Record<string, unknown>) {
  const { status, json } = await send(gate, "POST", "/api/v1/admin/api-keys", wanted);
  assert.equal(status, 201, JSON.stringify(json));
  return json as unknown as { id: string; key: string };
}

function sign(claims: Record<string, unknown>): Record<string, string> {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 600;
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ exp, ...claims })}`;
  const signature = createHmac("sha256", SECRET).update(signed).digest("base64url");
  return { Authorization: `Bearer ${signed}.${signature}` };
}

/** Opens an event stream; `ended` resolves when the gateway ends it gracefully. */
async function openStream(gate: Gate, path: string, headers: Record<string, string>) {
  // The gateway closes the connection of a stream that it ends: no other request may have been sent on it.
  const answer = await fetch(`${gate.url}${path}`, {
    headers: { ...headers, Connection: "close" },
  });
  assert.equal(answer.status, 200);
  const reader = answer.body!.getReader();
  await reader.read();
  const ended = (async () => {
    while (!(await reader.read()).done);
  })();
  return { ended, stop: () => reader.cancel() };
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({
    runtime,
    config: { workers: 2, auth_token: TOKEN, jwt_secret: SECRET },
  });
  /** The gateway with routes of a test's own upstream. */
  const start = async (context: TestContext): Promise<Gate> => {
    const target = await startUpstream(context);
    return shared.use({
      routes: [
        { prefix: "/keys", target, require_api_key: true },
        { prefix: "/acme", target, require_api_key: true, allowed_tenants: ["acme"] },
        { prefix: "/users", target },
        { prefix: "/tenant", target, allowed_tenants: ["acme"] },
        { prefix: "/open", target, auth: { type: "none" } },
        {
          prefix: "/limited",
          target,
          rate_limits: [
            { by: "tenant", rpm: 3 },
            { by: "claim", name: "plan", rpm: 2 },
          ],
        },
        {
          prefix: "/policy",
          target,
          auth: { type: "none" },
          policy:
            "deny * /policy/admin*\nallow GET *\nallow POST * if header.X-Role == editor\ndeny * *",
        },
      ],
    });
  };

  test(`limits count by API key, tenant and claim on all workers (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const { key } = await createKey(gate, { tenant: "acme", rate_limit_rpm: 2 });
    const free = await createKey(gate, { tenant: "acme" });
    const token = sign({ sub: "one" });
    const statusOf = async (path: string, headers: Record<string, string>): Promise<number> =>
      (await ask(gate, path, headers)).status;
    const paths = ["/keys/1", "/acme/2", "/keys/3"];
    const own: number[] = [];
    for (const path of paths) own.push(await statusOf(path, { ...token, "X-API-Key": key }));
    assert.deepEqual(own, [200, 200, 429], "a key's limit applies to all routes together");
    assert.equal(await statusOf("/keys/4", { ...token, "X-API-Key": free.key }), 200);

    const users = [
      { sub: "a", tenant: "t", plan: "free" },
      { sub: "b", tenant: "t", plan: "free" },
      { sub: "c", tenant: "t", plan: "free" },
      { sub: "d", tenant: "u", plan: "free" },
      { sub: "e", tenant: "t", plan: "paid" },
      { sub: "f", tenant: "u", plan: "paid" },
    ];
    const statuses: number[] = [];
    for (const claims of users) statuses.push(await statusOf("/limited", sign(claims)));
    assert.deepEqual(statuses, [200, 200, 429, 429, 429, 200]);
  });

  test(`API keys open their routes for their tenant only (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const { json: before } = await send(gate, "GET", "/api/v1/admin/api-keys");
    const acme = await createKey(gate, { tenant: "acme", name: "shop" });
    const other = await createKey(gate, { tenant: "other", routes: ["/keys"] });

    const without = await ask(gate, "/keys/a");
    assert.equal(without.status, 401);
    assert.match(without.headers.get("www-authenticate") ?? "", /^ApiKey/);
    assert.equal((await ask(gate, "/keys/a", { "X-API-Key": `${acme.key}x` })).status, 401);
    assert.equal((await ask(gate, "/keys/a", { "X-API-Key": acme.key.slice(0, -1) })).status, 401);
    assert.equal((await ask(gate, "/keys/a", sign({ sub: "ada" }))).status, 401);

    const open = await ask(gate, "/keys/a", { "X-API-Key": acme.key, "X-Tenant-Id": "forged" });
    assert.equal(open.status, 200);
    assert.equal(open.json["x-tenant-id"], "acme");
    assert.equal(open.json["x-api-key"], undefined, "the key must not reach the upstream");
    assert.equal((await ask(gate, "/keys/a", { apikey: acme.key })).status, 200);
    const both = { "X-API-Key": acme.key, apikey: other.key };
    assert.equal((await ask(gate, "/keys/a", both)).status, 401);

    assert.equal((await ask(gate, "/acme", { "X-API-Key": acme.key })).status, 200);
    assert.equal((await ask(gate, "/keys", { "X-API-Key": other.key })).status, 200);
    const foreign = await ask(gate, "/acme", { "X-API-Key": other.key });
    assert.deepEqual([foreign.status, foreign.json["code"]], [403, "forbidden"]);
    const forwarded = await ask(gate, "/open", { "X-API-Key": "of-the-upstream" });
    assert.equal(forwarded.json["x-api-key"], "of-the-upstream");
    assert.equal(
      (await ask(gate, "/keys", { "X-API-Key": acme.key, ...operator })).json["authorization"],
      undefined,
    );

    const { json: list } = await send(gate, "GET", "/api/v1/admin/api-keys");
    assert.equal(list.length, before.length! + 2);
    assert.ok(!JSON.stringify(list).includes(acme.key));
    assert.equal((await fetch(`${gate.url}/api/v1/admin/api-keys`)).status, 401);
    assert.ok(!gate.lines().some((line) => JSON.stringify(line).includes(acme.key)));
  });

  test(`a revoked key is refused at once and ends its streams, revoked keys and users also after kill -9 (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const kept = await createKey(gate, { tenant: "acme" });
    const revoked = await createKey(gate, { tenant: "acme" });
    const stream = await openStream(gate, "/keys/events", { "X-API-Key": revoked.key });
    const other = await openStream(gate, "/keys/events", { "X-API-Key": kept.key });
    const { status } = await send(gate, "DELETE", `/api/v1/admin/api-keys/${revoked.id}`);
    assert.equal(status, 200);
    assert.equal((await ask(gate, "/keys", { "X-API-Key": revoked.key })).status, 401);
    await stream.ended;
    await other.stop();
    const last = await createKey(gate, { tenant: "acme" });
    const mia = sign({ sub: "mia" });
    const { status: ended } = await send(gate, "POST", "/api/v1/admin/policy/revoke", {
      username: "mia",
    });
    assert.equal(ended, 200);
    const again = await shared.restart();
    assert.equal((await ask(again, "/keys", { "X-API-Key": revoked.key })).status, 401);
    assert.equal((await ask(again, "/keys", { "X-API-Key": kept.key })).status, 200);
    assert.equal((await ask(again, "/keys", { "X-API-Key": last.key })).status, 200);
    assert.equal((await ask(again, "/users", mia)).status, 401);
    assert.equal((await ask(again, "/users", sign({ sub: "leo" }))).status, 200);
  });

  test(`a revoked user's tokens and streams end, later tokens are valid (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const now = Math.floor(Date.now() / 1000);
    const ada = sign({ sub: "u1", username: "ada", iat: now - 5 });
    const timeless = sign({ sub: "u1", username: "ada" });
    const bob = sign({ sub: "bob", iat: now - 5 });
    const stream = await openStream(gate, "/users/events", ada);
    const { status, json } = await send(gate, "POST", "/api/v1/admin/policy/revoke", {
      username: "ada",
    });
    assert.equal(status, 200);
    assert.deepEqual(json, { status: "revoked", message: "the sessions of ada are invalid" });
    assert.equal((await ask(gate, "/users", ada)).status, 401);
    assert.equal((await ask(gate, "/users", timeless)).status, 401);
    assert.equal((await ask(gate, "/users", bob)).status, 200);
    await stream.ended;
    assert.equal(
      (await ask(gate, "/users", sign({ sub: "u1", username: "ada", iat: now + 20 }))).status,
      200,
    );
    const { status: missing } = await send(gate, "POST", "/api/v1/admin/policy/revoke", {});
    assert.equal(missing, 400);
  });

  test(`the log has the reason of a refused token, the response only for the issuer's own (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const [head, body] = sign({ sub: "u1" })["Authorization"]!.replace("Bearer ", "").split(".");
    const forged = await fetch(`${gate.url}/users`, {
      headers: { Authorization: `Bearer ${head}.${body}.${"A".repeat(43)}` },
    });
    const { trace_id: traceId, detail } = JSON.parse(await forged.text());
    assert.deepEqual([forged.status, detail], [401, "The token is not valid."]);
    const line = await gate.waitForLine((each) => each["trace_id"] === traceId);
    assert.equal(line["detail"], "The token's signature is invalid.");
  });

  test(`tokens of an older policy are accepted and marked (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const now = Math.floor(Date.now() / 1000);
    const isMarked = async (claims: Record<string, unknown>) => {
      const answer = await ask(gate, "/users", sign({ sub: "eve", ...claims }));
      assert.equal(answer.status, 200);
      return answer.headers.get("x-token-refresh");
    };
    assert.equal(await isMarked({ policy_version: 1 }), null);
    const { json } = await send(gate, "POST", "/api/v1/admin/policy/reload");
    assert.deepEqual(json, {
      status: "reloaded",
      message: "policy version 2 is active, with 0 rules",
    });
    assert.equal(await isMarked({ policy_version: 1 }), "true");
    assert.equal(await isMarked({ policy_version: 2 }), null);
    assert.equal(await isMarked({ iat: now - 60 }), "true");
    assert.equal(await isMarked({ iat: now + 60 }), null);
  });

  test(`policies of a route and of all routes deny requests (${runtime.name})`, async (context) => {
    const gate = await start(context);
    const post = (headers: Record<string, string>) =>
      fetch(`${gate.url}/policy/x`, { method: "POST", headers }).then((answer) => answer.status);
    assert.equal((await ask(gate, "/policy/x")).status, 200);
    const readHead = (path: string) => fetch(`${gate.url}${path}`, { method: "HEAD" });
    assert.equal((await readHead("/policy/x")).status, 200);
    assert.equal((await readHead("/policy/admin")).status, 403);
    for (const path of [
      "/policy/admin",
      "/policy/admin/x",
      "/policy/%61dmin",
      "/policy/x/../admin",
      "/policy//admin",
      "/policy/admin;a=b/x",
      "/policy;a=b/admin",
      "/policy/;a=b/admin",
      "/policy//;b/;c/admin",
    ]) {
      const denied = await ask(gate, path);
      assert.deepEqual([denied.status, denied.json["code"]], [403, "policy_denied"], path);
    }
    assert.equal(await post({}), 403);
    assert.equal(await post({ "X-Role": "reader" }), 403);
    assert.equal(await post({ "X-Role": "editor" }), 200);
    const rules = [
      { effect: "deny", path: "/policy/x*", when: { header: "X-Blocked", equals: "yes" } },
      { effect: "deny", methods: ["GET"], path: "/open*" },
    ];
    const { status } = await send(gate, "POST", "/api/v1/admin/policy/reload", {
      version: 9,
      rules,
    });
    assert.equal(status, 200);
    assert.equal((await ask(gate, "/open")).status, 403);
    for (const value of ["yes", "no, yes", "yes, "]) {
      const blocked = await ask(gate, "/policy/x", { "X-Blocked": value });
      assert.equal(blocked.status, 403, value);
    }
    assert.equal((await ask(gate, "/policy/x", { "X-Blocked": "yes-no" })).status, 200);
    assert.equal((await ask(gate, "/policy/x")).status, 200);
    const bad = await send(gate, "POST", "/api/v1/admin/policy/reload", {
      rules: [{ effect: "maybe" }],
    });
    assert.equal(bad.status, 400);
    const open = { default: "allow", rules: [] };
    assert.equal((await send(gate, "POST", "/api/v1/admin/policy/reload", open)).status, 200);
    assert.equal((await ask(gate, "/open")).status, 200);
  });

  test(`allowed_tenants reads the tenant of tokens (${runtime.name})`, async (context) => {
    const gate = await start(context);
    assert.equal((await ask(gate, "/tenant", sign({ sub: "a", tenant: "acme" }))).status, 200);
    assert.equal((await ask(gate, "/tenant", sign({ sub: "a", tenant: "other" }))).status, 403);
    assert.equal((await ask(gate, "/tenant", sign({ sub: "a" }))).status, 403);
  });
}
