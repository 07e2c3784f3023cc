// The admin API, users and their keys, budgets and the access log on a running store.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { vaultRoot } from "@platform/testing/staged-vault";
import type { Answer, Key } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

const JSON_TYPE = { "content-type": "application/json" };

let serving: Serving;
before(async () => {
  serving = await serve({
    env: {
      PLATFORM_VAULT_TENANT_RATE: "1",
      PLATFORM_VAULT_TENANT_BURST: "60",
      PLATFORM_VAULT_TRUSTED_PROXIES: "127.0.0.1,10.0.0.0/8",
    },
  });
});
after(() => serving[Symbol.asyncDispose]());

function call(method: string, path: string, body?: object, more = {}): Promise<Answer> {
  const content = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
  return serving.admin.send(method, path, { ...content, ...more });
}

async function createUser(name: string, policy: object, namespaces: string[] = []): Promise<Key> {
  const put = await call("PUT", `/api/v1/users/${name}`, {
    policies: { main: policy },
    namespaces,
  });
  assert.equal(put.status, 200, put.text);
  const made = await call("POST", "/api/v1/keys", { user: name });
  assert.equal(made.status, 201, made.text);
  const key = JSON.parse(made.text) as { access_key: string; secret_key: string };
  return { accessKey: key.access_key, secretKey: key.secret_key };
}

function allow(actions: string[], resource: string): object {
  const statement = { Effect: "Allow", Action: actions, Resource: `arn:aws:s3:::${resource}` };
  return { Version: "2012-10-17", Statement: [statement] };
}

// Only Host and x-amz-date are signed, with the hash of the body.
function signLikeCurl(path: string, body: string): Record<string, string> {
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) =>
    createHmac("sha256", key).update(text).digest();
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const host = "vault.example";
  const scope = [time.slice(0, 8), "us-east-1", "s3", "aws4_request"];
  const signed = `host:${host}\nx-amz-date:${time}\n`;
  const request = `POST\n${path}\n\n${signed}\nhost;x-amz-date\n${hash(body)}`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope.join("/")}\n${hash(request)}`;
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${vaultRoot.secretKey}`);
  const credential = `${vaultRoot.accessKey}/${scope.join("/")}`;
  return {
    host,
    "x-amz-date": time,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-date, Signature=${hmac(key, text).toString("hex")}`,
  };
}

describe("the admin API", () => {
  test("health and metrics are open, everything else is not", async () => {
    const health = await call("GET", "/api/v1/health", undefined, { key: null });
    assert.equal(health.status, 200);
    const { status, version, daemon } = JSON.parse(health.text) as Record<string, unknown>;
    assert.deepEqual(
      { status, version, daemon },
      { status: "UP", version: "2.0.0", daemon: "platform-vaultd" },
    );
    await serving.s3.must("GET", "/");
    const metrics = await call("GET", "/metrics", undefined, { key: null });
    for (const name of [
      "http_requests_total",
      "request_duration_seconds",
      "inflight_requests",
      "objects_total",
      "storage_bytes",
    ]) {
      assert.match(metrics.text, new RegExp(`^# TYPE platform_vault_${name} `, "m"));
    }
    for (const [method, path] of [
      ["GET", "/api/v1/buckets"],
      ["POST", "/api/v1/buckets"],
      ["GET", "/api/v1/users"],
      ["POST", "/api/v1/keys"],
      ["POST", "/api/v1/events/subscribe"],
      ["POST", "/admin/batch"],
    ] as const) {
      assert.equal((await call(method, path, undefined, { key: null })).status, 401, path);
    }
    const wrong = { key: { ...vaultRoot, secretKey: "wrong-secret" } };
    assert.equal((await call("GET", "/api/v1/buckets", undefined, wrong)).status, 401);
  });

  test("a root signature is accepted without x-amz-content-sha256, as curl sends it, and covers the body", async () => {
    const body = JSON.stringify({ name: "by-curl" });
    const path = "/api/v1/buckets";
    const headers = { ...JSON_TYPE, ...signLikeCurl(path, body) };
    const forged = { key: null, headers, body: JSON.stringify({ name: "forged" }) };
    assert.equal((await serving.admin.send("POST", path, forged)).status, 401);
    const sent = await serving.admin.send("POST", path, { key: null, headers, body });
    assert.equal(sent.status, 201, sent.text);
  });

  test("buckets are created and listed", async () => {
    assert.equal((await call("POST", "/api/v1/buckets", { name: "made" })).status, 201);
    assert.ok(
      (JSON.parse((await call("GET", "/api/v1/buckets")).text) as string[]).includes("made"),
    );
    assert.equal((await call("POST", "/api/v1/buckets", { name: "No" })).status, 400);
    assert.equal((await call("POST", "/api/v1/buckets", { name: "made" })).status, 409);
    const page = await call("GET", "/ui/", undefined, { key: null });
    assert.match(
      String(page.headers["content-type"]),
      /^text\/html/,
      "the console, or why there is none",
    );
  });

  test("a console session works for pages of its own origin only, and ends with the logout", async () => {
    const login = await call(
      "POST",
      "/console/login",
      { username: vaultRoot.accessKey, password: vaultRoot.secretKey },
      { key: null },
    );
    assert.equal(login.status, 200, login.text);
    const setCookie = String(login.headers["set-cookie"]);
    assert.match(setCookie, /HttpOnly; SameSite=Strict/);
    const cookie = setCookie.split(";")[0]!;
    const asked = (headers: object, method = "GET", path = "/console/session") =>
      serving.admin.send(method, path, { key: null, headers: { cookie, ...headers } });
    assert.equal((await asked({})).status, 200);
    const body = JSON.stringify({ name: "by-session" });
    const post = (origin: string) =>
      serving.admin.send("POST", "/api/v1/buckets", {
        key: null,
        body,
        headers: { ...JSON_TYPE, cookie, origin },
      });
    assert.equal((await post("http://evil.example")).status, 403);
    assert.equal((await post(serving.vault.adminUrl)).status, 201);
    assert.equal(
      (await asked({ origin: serving.vault.adminUrl }, "POST", "/console/logout")).status < 300,
      true,
    );
    assert.equal((await asked({})).status, 401);
  });

  test("logins are throttled after ten failures", async () => {
    const fail = () =>
      call("POST", "/console/login", { access_key: "x", secret_key: "y" }, { key: null });
    const statuses: number[] = [];
    for (let number = 0; number < 11; number += 1) statuses.push((await fail()).status);
    assert.deepEqual(new Set(statuses.slice(0, 10)), new Set([401]));
    assert.equal(statuses[10], 429);
  });
});

describe("users", () => {
  test("a user may do what its policies allow, until its key is disabled", async () => {
    const { s3 } = serving;
    await s3.must("PUT", "/team");
    const key = await createUser("reader", allow(["s3:GetObject"], "team/open/*"));
    await s3.must("PUT", "/team/open/a", { body: "a" });
    await s3.must("PUT", "/team/closed/a", { body: "a" });
    assert.equal((await s3.must("GET", "/team/open/a", { key })).text, "a");
    for (const [method, target] of [
      ["GET", "/team/closed/a"],
      ["PUT", "/team/open/b"],
      ["GET", "/team"],
      ["GET", "/"],
    ] as const) {
      const answer = await s3.send(method, target, { key });
      assert.deepEqual([answer.status, answer.code], [403, "AccessDenied"], `${method} ${target}`);
    }
    assert.equal(
      (await call("PATCH", `/api/v1/keys/${key.accessKey}`, { enabled: false })).status,
      200,
    );
    assert.equal((await s3.send("GET", "/team/open/a", { key })).code, "InvalidAccessKeyId");
    const listed = await call("GET", "/api/v1/keys?user=reader");
    assert.ok(!listed.text.includes(key.secretKey));
    const refused = await call("GET", "/api/v1/buckets", undefined, { key });
    assert.ok([401, 403].includes(refused.status));
  });

  test("a policy for a network uses the last address that is not a trusted proxy", async () => {
    const { s3 } = serving;
    await s3.must("PUT", "/office");
    await s3.must("PUT", "/office/a", { body: "a" });
    const statement = {
      Effect: "Allow",
      Action: "s3:GetObject",
      Resource: "arn:aws:s3:::office/*",
      Condition: { IpAddress: { "aws:SourceIp": "198.51.100.0/24" } },
    };
    const key = await createUser("office", { Version: "2012-10-17", Statement: [statement] });
    for (const [chain, status] of [
      ["198.51.100.7", 200],
      ["198.51.100.7, 10.0.0.2", 200],
      ["203.0.113.1, 198.51.100.7:4711, 10.0.0.2", 200],
      ["203.0.113.1", 403],
      ["198.51.100.7, 203.0.113.1", 403],
      ["198.51.100.7, 203.0.113.1, 10.0.0.2", 403],
      ["", 403],
    ] as const) {
      const headers = chain === "" ? {} : { "x-forwarded-for": chain };
      assert.equal((await s3.send("GET", "/office/a", { key, headers })).status, status, chain);
    }
  });

  test("users, keys and secrets survive a restart", async () => {
    const { s3, vault } = serving;
    const key = await createUser("lasting", allow(["s3:*"], "*"));
    await vault.kill();
    await vault.start();
    assert.equal((await s3.send("GET", "/", { key })).status, 200);
  });
});

describe("budgets", () => {
  test("a key above its rate gets 429 SlowDown with Retry-After; others continue", async () => {
    const { s3 } = serving;
    const key = await createUser("busy", allow(["s3:*"], "*"), ["north"]);
    let slowed: Answer | undefined;
    // On a slow machine, the budget refills meanwhile.
    for (let number = 0; number < 1_000 && slowed === undefined; number += 1) {
      const answer = await s3.send("GET", "/", { key });
      if (answer.status === 429) slowed = answer;
    }
    assert.equal(slowed?.code, "SlowDown");
    assert.ok(Number(slowed?.headers["retry-after"]) >= 1);
    const other = await createUser("calm", allow(["s3:*"], "*"));
    assert.equal((await s3.send("GET", "/", { key: other })).status, 200);
    const inNamespace = { key, headers: { "x-platform-vault-namespace": "north" } };
    assert.equal((await s3.send("GET", "/", inNamespace)).status, 200);
    const elsewhere = { key: other, headers: { "x-platform-vault-namespace": "north" } };
    assert.equal((await s3.send("GET", "/", elsewhere)).status, 403);
  });
});

test("the access log tells who did what, from where and with which result", async () => {
  const { s3, vault } = serving;
  const key = await createUser("logged", allow(["s3:*"], "*"));
  await s3.must("PUT", "/logged", { key });
  await s3.must("PUT", "/logged/a%20b", { key, body: "x" });
  await s3.send("GET", "/logged/missing", { key });
  await s3.must("GET", "/healthz", { key: null });
  await vault.stop();
  await vault.start();
  let whole = "";
  const lines = await waitFor(async () => {
    const listed = await s3.must("GET", "/system-access-logs?list-type=2", { key });
    const texts: string[] = [];
    for (const [, name] of listed.text.matchAll(/<Key>([^<]+)/g)) {
      texts.push((await s3.must("GET", `/system-access-logs/${name}`, { key })).text);
    }
    whole = texts.join("");
    const entries = whole.split("\n").filter((line) => line.includes('"bucket":"logged"'));
    return entries.length < 3
      ? undefined
      : entries.map((line) => JSON.parse(line) as Record<string, unknown>);
  }, "the log");
  const seen = lines.map(({ operation, key: name, status, requester }) => [
    operation,
    name,
    status,
    requester,
  ]);
  assert.deepEqual(seen, [
    ["CreateBucket", "", 200, key.accessKey],
    ["PutObject", "a b", 200, key.accessKey],
    ["GetObject", "missing", 404, key.accessKey],
  ]);
  assert.match(String(lines[0]!["source_ip"]), /^127\.0\.0\.1:\d+$/);
  assert.match(String(lines[0]!["timestamp"]), /^\d{4}-\d\d-\d\dT/);
  assert.match(whole, /"operation":"Probe"/);
  assert.doesNotMatch(whole, /"operation":"Unknown"[^\n]*"status":200/);
});
