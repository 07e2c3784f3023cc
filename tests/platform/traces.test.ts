// Traces over all services: a request through the gateway to a project, and its spans in each of them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { ADA, Platform } from "../identity/platform.ts";

interface Span {
  service: string;
  span_id: string;
  parent_span_id: string;
  name: string;
  status: string;
  attributes: Record<string, unknown>;
}

const PROJECT = `server { port: 3000 }
export route GET /hello () { return "hello" }
export route GET /broken () { throw new Error("the shelf is empty"); }
export route GET /variables () {
  return { greeting: process.env["GREETING"] ?? null, key: process.env["API_KEY"] ?? null, issuer: process.env["OIDC_ISSUER"] };
}
export route POST /echo ({ headers, body }) {
  return { token: headers.get("authorization"), cookie: headers.get("cookie"), own: headers.get("x-own"), body };
}
`;
let platform: Platform;

before(async () => {
  platform = await Platform.start({ project: PROJECT });
});
after(() => platform.stop());

async function read(url: URL, token: string, traceId: string): Promise<Span[]> {
  const answer = await fetch(new URL(`/api/v1/admin/traces/${traceId}`, url), {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as { spans: Span[] }).spans;
}

test("a failed request is found in the gateway and in the project, as one tree", async () => {
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const answer = await platform.ask("/broken", {
    host: "shop.localhost",
    headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  });
  assert.equal(answer.status, 500);
  const token = platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
  const [atGateway] = await read(platform.gate, token, traceId);
  assert.deepEqual(
    [atGateway?.service, atGateway?.parent_span_id, atGateway?.status],
    ["gate", "00f067aa0ba902b7", "error"],
  );
  assert.equal(atGateway?.attributes["url.path"], "/broken");
  const runtime = platform.readCredential("PLATFORM_RUNTIME_TOKEN");
  const [inProject] = await waitFor(
    async () => {
      const spans = await read(platform.runtime, runtime, traceId);
      return spans.length > 0 ? spans : undefined;
    },
    () => platform.log.slice(-2_000),
  );
  assert.equal(inProject?.service, "shop");
  assert.equal(inProject?.parent_span_id, atGateway?.span_id);
  assert.equal(inProject?.status, "error");
});

test("other services keep theirs, for those who may read them", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  await fetch(new URL("/api/v1/users/none", platform.auth), {
    headers: { ...headers, authorization: `Bearer ${platform.admin}` },
  });
  const [span] = await read(platform.auth, platform.admin, traceId);
  assert.equal(span?.service, "auth");
  assert.deepEqual(await read(platform.auth, platform.admin, "f".repeat(32)), []);
  const { access_token: ada } = await platform.signIn(ADA);
  for (const url of [platform.auth, platform.gate, platform.runtime]) {
    const answer = await fetch(new URL(`/api/v1/admin/traces/${traceId}`, url), {
      headers: { authorization: `Bearer ${ada}` },
    });
    assert.equal(answer.status, 403, url.href);
  }
});

async function tryIt(body: object, token = platform.admin, project = "shop") {
  const url = new URL(`/api/v1/projects/${project}/try`, platform.runtime);
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      cookie: "session=of-the-console",
    },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test("a request is tried as nobody or as the application, never as the caller", async () => {
  const headers = { "x-own": "yes", "content-type": "application/json" };
  const echo = { method: "POST", path: "/echo?a=1", headers, body: '{"n":1}' };
  const first = await tryIt(echo);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.equal(first.body["status"], 200);
  const seen = JSON.parse(String(first.body["body"])) as Record<string, unknown>;
  assert.deepEqual(seen, { own: "yes", body: { n: 1 } });
  const gate = platform.readCredential("PLATFORM_GATE_AUTH_TOKEN");
  const [span] = await read(platform.gate, gate, String(first.body["trace_id"]));
  assert.equal(span?.attributes["url.path"], "/echo");

  const second = await tryIt({ ...echo, as: "application", scopes: ["notify:send"] });
  const { token } = JSON.parse(String(second.body["body"])) as { token: string };
  const [, payload = ""] = token.replace("Bearer ", "").split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as { scope: string };
  assert.equal(claims.scope, "notify:send");
  // It has ended with the request.
  const check = await fetch(new URL("/api/v1/auth/userinfo", platform.auth), {
    headers: { authorization: token },
  });
  assert.ok([401, 403].includes(check.status));
  const audit = await fetch(new URL("/api/v1/data-audit?target=shop", platform.runtime), {
    headers: { authorization: `Bearer ${platform.admin}` },
  });
  const { items } = (await audit.json()) as { items: { detail: Record<string, unknown> }[] };
  assert.deepEqual(
    items.map(({ detail }) => [detail["as"], detail["path"], detail["name"]]),
    [
      ["application", "/echo", "root"],
      ["nobody", "/echo", "root"],
    ],
  );
});

test("what may not be tried is refused", async () => {
  const get = { method: "GET", path: "/hello" };
  const { access_token: ada } = await platform.signIn(ADA);
  assert.equal((await tryIt(get, ada)).status, 403);
  assert.equal((await tryIt(get, platform.admin, "nothing")).status, 404);
  for (const bad of [
    { ...get, path: "hello" },
    { ...get, path: "/a b" },
    { ...get, path: "/a\r\nHost: b" },
    { ...get, headers: { host: "identity.localhost" } },
    { ...get, headers: { "x-a": "b\r\nc: d" } },
    { ...get, headers: { "a b": "c" } },
    { ...get, method: "CONNECT" },
  ]) {
    assert.equal((await tryIt(bad)).status, 400, JSON.stringify(bad));
  }
  const unknown = await tryIt({ ...get, as: "application", scopes: ["users:write"] });
  assert.equal(unknown.status, 422, JSON.stringify(unknown.body));
  // The host stays that of the project.
  const other = await tryIt({ ...get, path: "//identity.localhost/" });
  assert.equal(other.body["status"], 404);
});

test("a tried request reaches what one from outside reaches, at the host of its project", async () => {
  const paths = [
    "/api/v1/routes",
    "/api/v1/admin/series",
    "/api/docs",
    "/metrics",
    "/console/config",
    "/ui/",
    "/svc/auth/api/v1/users",
    "/hello/../api/v1/routes",
    "/hello/..%2fapi/v1/routes",
    "/%2e%2e/%2e%2e/api/v1/routes",
    "/..//api/v1/routes",
    "//console.localhost/svc/auth/api/v1/users",
    "/@127.0.0.1:9001/",
    "/\\\\127.0.0.1/x",
    "/hello?x=http://127.0.0.1/",
  ];
  for (const path of paths) {
    const tried = await tryIt({ method: "GET", path });
    assert.equal(tried.status, 200, path);
    const { status } = await platform.ask(path, {
      host: "shop.localhost",
      headers: { "x-forwarded-for": "192.0.2.1" },
    });
    assert.equal(tried.body["status"], status, path);
    if (!path.startsWith("/hello?")) assert.ok(status >= 400, `${path}: ${status}`);
  }
  for (const path of [
    "http://127.0.0.1/",
    "https://evil.example/",
    "*",
    "",
    "/a\tb",
    "/a#\u0000",
  ]) {
    assert.equal((await tryIt({ method: "GET", path })).status, 400, path);
  }
  for (const name of ["x-forwarded-for", "Forwarded", "via", "X_Real_IP", "Proxy-Connection"]) {
    const body = { method: "GET", path: "/hello", headers: { [name]: "127.0.0.1" } };
    assert.equal((await tryIt(body)).status, 400, name);
  }
});

async function callVariables(method: string, path: string, json?: object, token = platform.admin) {
  const url = new URL(`/api/v1/projects/shop/environment${path}`, platform.runtime);
  const answer = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? {} : (JSON.parse(text) as never) };
}

interface ListedVariables {
  items: { name: string; source: string; secret: boolean | null; value: string | null }[];
  restart_needed: boolean;
}

test("variables of the platform, of the process, and of others cannot be set", async () => {
  for (const name of ["OIDC_ISSUER", "PLATFORM_SERVICE_PORT", "PLATFORM_X", "MESSAGING_URL"]) {
    assert.equal((await callVariables("PUT", `/${name}`, { value: "x" })).status, 409, name);
  }
  for (const name of ["NODE_OPTIONS", "PATH", "LD_PRELOAD", "a-b", "1A", "A%00"]) {
    assert.equal((await callVariables("PUT", `/${name}`, { value: "x" })).status, 400, name);
  }
  for (const value of ["a\0b", "x".repeat(40_000)]) {
    assert.equal((await callVariables("PUT", "/LONG", { value })).status, 400);
  }
  const { access_token: ada } = await platform.signIn(ADA);
  for (const [method, path] of [
    ["GET", ""],
    ["PUT", "/GREETING"],
    ["DELETE", "/GREETING"],
  ] as const) {
    const json = method === "PUT" ? { value: "x" } : undefined;
    assert.equal((await callVariables(method, path, json, ada)).status, 403, method);
  }
  assert.equal((await callVariables("DELETE", "/NOTHING")).status, 404);
});

test("variables of a project are set for its next start, secrets without a way to read them", async () => {
  const secret = 'hunter2 "\n$x ü';
  assert.equal(
    (await callVariables("PUT", "/GREETING", { value: "hi", secret: false })).status,
    204,
  );
  assert.equal((await callVariables("PUT", "/API_KEY", { value: secret })).status, 204);
  const { body } = (await callVariables("GET", "")) as never as { body: ListedVariables };
  assert.equal(body.restart_needed, true);
  const describe = (name: string): unknown[] => {
    const found = body.items.find((one) => one.name === name);
    return [found?.source, found?.secret, found?.value];
  };
  assert.deepEqual(describe("GREETING"), ["own", false, "hi"]);
  assert.deepEqual(describe("API_KEY"), ["own", true, null]);
  assert.deepEqual(describe("OIDC_CLIENT_SECRET"), ["platform", null, null]);
  assert.deepEqual(describe("PATH"), ["shell", null, null]);
  const folder = join(platform.dataDir, "environment");
  for (const file of readdirSync(folder)) {
    const path = join(folder, file);
    assert.equal(statSync(path).mode & 0o777, 0o600, file);
    assert.ok(!readFileSync(path, "utf8").includes("hunter2"), file);
  }

  const restart = new URL("/api/v1/services/shop/restart", platform.runtime);
  const headers = { authorization: `Bearer ${platform.admin}` };
  assert.equal((await fetch(restart, { method: "POST", headers })).status, 202);
  const readProcess = async (): Promise<Record<string, unknown>> => {
    const { status, text } = await platform.ask("/variables", { host: "shop.localhost" });
    return status === 200 ? (JSON.parse(text) as Record<string, unknown>) : {};
  };
  const seen = await waitFor(async () => {
    const found = await readProcess();
    return found["greeting"] === "hi" ? found : undefined;
  });
  assert.equal(seen["key"], secret);
  assert.match(String(seen["issuer"]), /^http/);
  await waitFor(async () => {
    const { body: later } = (await callVariables("GET", "")) as never as { body: ListedVariables };
    return !later.restart_needed;
  });
  assert.equal((await callVariables("DELETE", "/API_KEY")).status, 204);
  const audit = await fetch(new URL("/api/v1/data-audit?target=shop", platform.runtime), {
    headers,
  });
  const text = await audit.text();
  assert.ok(!text.includes("hunter2"), "no value in the audit log");
  const { items } = JSON.parse(text) as { items: { action: string; detail: object }[] };
  assert.deepEqual(
    items.slice(0, 3).map(({ action }) => action),
    ["project.variable.remove", "project.variable.set", "project.variable.set"],
  );
});

test("the operations of a project are those of its documentation", async () => {
  const answer = await fetch(new URL("/api/v1/projects/shop/operations", platform.runtime), {
    headers: { authorization: `Bearer ${platform.admin}` },
  });
  const { items, docs } = (await answer.json()) as {
    docs: string;
    items: { method: string; path: string }[];
  };
  assert.match(docs, /^http:\/\/shop\.localhost:\d+\/api\/docs$/);
  assert.deepEqual(items.map(({ method, path }) => `${method} ${path}`).toSorted(), [
    "GET /broken",
    "GET /hello",
    "GET /variables",
    "POST /echo",
  ]);
});
