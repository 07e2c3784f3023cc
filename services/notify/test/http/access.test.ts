// Access to the API: loopback, operator token, scopes of JWTs, sender domains, throttling.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { startStage, type Stage } from "../stage.ts";

const SECRET = "0123456789abcdef0123456789abcdef";
const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello" };

function bearer(sub: string, scope: string): Record<string, string> {
  const encode = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = encode({ alg: "HS256", typ: "at+jwt" });
  const claims = encode({ sub, scope, exp: Math.floor(Date.now() / 1000) + 600 });
  const signature = createHmac("sha256", SECRET).update(`${head}.${claims}`).digest("base64url");
  return { authorization: `Bearer ${head}.${claims}.${signature}` };
}

describe("integrated mode", () => {
  let stage: Stage;
  const operator = { authorization: "Bearer operator-token" };
  const shop = bearer("shop", "notify:send");
  before(async () => {
    stage = await startStage({
      token: "operator-token",
      jwt_secret: SECRET,
      from_domain: "shop.example",
      from_domains: ["news.example"],
      send_rate_per_minute: 60,
      send_burst: 5,
    });
  });
  after(() => stage.close());

  test("requests without a token, or with a foreign one, are refused", async () => {
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 401);
    const wrong = { authorization: "Bearer wrong" };
    const refused = await stage.call("POST", "/api/v1/send", MAIL, wrong);
    assert.equal(refused.status, 401);
    assert.match(refused.headers.get("www-authenticate")!, /invalid_token/);
    assert.equal((await stage.call("GET", "/healthz")).status, 200);
  });

  test("the scope notify:send allows sending, and nothing else", async () => {
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL, shop)).status, 200);
    const none = bearer("shop", "openid");
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL, none)).status, 403);
    for (const [method, path] of [
      ["GET", "/api/v1/suppression"],
      ["POST", "/api/v1/templates"],
      ["GET", "/api/v1/inbox"],
    ] as const) {
      assert.equal((await stage.call(method, path, undefined, shop)).status, 403, path);
      const manager = bearer("boss", "notify:manage");
      assert.notEqual((await stage.call(method, path, undefined, manager)).status, 403, path);
    }
  });

  test("an operation refuses users without its rights before it reads their input", async () => {
    const { body } = await stage.call("GET", "/api/docs/openapi.json");
    const paths = body.paths as Record<string, Record<string, { security?: unknown[] }>>;
    const own = Object.entries(paths).filter(([path]) => path.startsWith("/api/v1/"));
    const guarded = own.flatMap(([path, operations]) =>
      Object.entries(operations)
        .filter(([, { security }]) => security?.length !== 0)
        .map(([method]) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "%20x")] as const),
    );
    assert.ok(guarded.length > 50, `${guarded.length} operations`);
    const callers = {
      "no rights": bearer("shop", "openid"),
      "no subject": bearer("", "notify:send"),
    };
    for (const [method, path] of guarded) {
      for (const [name, caller] of Object.entries(callers)) {
        const input = method === "GET" ? undefined : '{"unknown":';
        const headers = { ...caller, "content-type": "application/json" };
        const { status, text } = await stage.call(method, `${path}?limit=x`, input, headers);
        assert.equal(status, 403, `${method} ${path} with ${name}: ${text.slice(0, 300)}`);
      }
    }
  });

  test("clients see their own messages only", async () => {
    const { body } = await stage.call("POST", "/api/v1/send", MAIL, shop);
    const path = `/api/v1/messages/${body.message_id}`;
    assert.equal((await stage.call("GET", path, undefined, shop)).status, 200);
    const other = bearer("other", "notify:send");
    assert.equal((await stage.call("GET", path, undefined, other)).status, 404);
    assert.equal((await stage.call("DELETE", path, undefined, other)).status, 404);
    const list = await stage.call("GET", "/api/v1/messages", undefined, other);
    assert.deepEqual(list.body.messages, []);
    assert.equal((await stage.call("GET", path, undefined, operator)).status, 200);
  });

  test("idempotency keys of clients are separate", async () => {
    const key = { "Idempotency-Key": "same" };
    const client = bearer("keys1", "notify:send");
    const first = await stage.call("POST", "/api/v1/send", MAIL, { ...client, ...key });
    const other = bearer("keys2", "notify:send");
    const second = await stage.call("POST", "/api/v1/send", MAIL, { ...other, ...key });
    assert.notEqual(first.body.message_id, second.body.message_id);
  });

  test("a sender of another domain is refused, but not for the operator", async () => {
    const client = bearer("domains", "notify:send");
    const news = { ...MAIL, from: "a@news.example" };
    assert.equal((await stage.call("POST", "/api/v1/send", news, client)).status, 200);
    const foreign = { ...MAIL, from: "ceo@bank.example" };
    const refused = await stage.call("POST", "/api/v1/send", foreign, client);
    assert.equal(refused.status, 403);
    assert.match(refused.body.detail, /bank\.example is not allowed/);
    assert.equal((await stage.call("POST", "/api/v1/send", foreign, operator)).status, 200);
  });

  test("a client that sends too fast gets 429, and others are not affected", async () => {
    const fast = bearer("fast", "notify:send");
    const statuses: number[] = [];
    for (let index = 0; index < 6; index += 1) {
      statuses.push((await stage.call("POST", "/api/v1/send", MAIL, fast)).status);
    }
    assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);
    const limited = await stage.call("POST", "/api/v1/send", MAIL, fast);
    assert.match(limited.headers.get("retry-after")!, /^\d+$/);
    assert.match(limited.headers.get("ratelimit-policy")!, /"send";q=5/);
    const slow = bearer("slow", "notify:send");
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL, slow)).status, 200);
    stage.advance(2_000);
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL, fast)).status, 200);
  });

  test("the operator is not limited", async () => {
    for (let index = 0; index < 8; index += 1) {
      assert.equal((await stage.call("POST", "/api/v1/send", MAIL, operator)).status, 200);
    }
  });

  test("logs contain neither tokens nor contents", () => {
    const all = stage.log.join("");
    assert.doesNotMatch(all, /operator-token|eyJ/);
    const line = stage.log.find((one) => one.includes("message accepted"))!;
    const fields = JSON.parse(line) as Record<string, unknown>;
    for (const name of [
      "level",
      "timestamp",
      "trace_id",
      "message_id",
      "to",
      "template",
      "channel",
      "status",
    ]) {
      assert.ok(name in fields, name);
    }
  });
});

describe("standalone mode", () => {
  test("programs on this machine have access, forwarded requests have not", async () => {
    const stage = await startStage();
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 200);
    const forwarded = { "X-Forwarded-For": "192.0.2.1" };
    assert.equal((await stage.call("POST", "/api/v1/send", MAIL, forwarded)).status, 403);
    const page = { Origin: "https://evil.example" };
    assert.equal((await stage.call("GET", "/api/v1/inbox", undefined, page)).status, 403);
    await stage.close();
  });

  test("health, readiness, metrics and OpenAPI are served", async () => {
    const stage = await startStage();
    const health = await stage.call("GET", "/healthz");
    assert.deepEqual(health.body, { status: "UP", service: "notify", version: "1.0.0" });
    assert.equal((await stage.call("GET", "/readyz")).status, 200);
    const { text } = await stage.call("GET", "/metrics");
    for (const name of [
      "platform_notify_suppressed_total 0",
      "platform_notify_templates_active 0",
      "platform_notify_queued 0",
      "platform_notify_delivery_latency_ms_count 0",
    ]) {
      assert.ok(text.includes(name), name);
    }
    const { body } = await stage.call("GET", "/api/docs/openapi.json");
    for (const path of ["/api/v1/send", "/api/v1/send/template", "/api/v1/suppression"]) {
      assert.ok(path in body.paths, path);
    }
    await stage.close();
  });
});
