// Everyday rules of routes at the real gateway: CORS, header rules, paths, redirects and fixed responses.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { runtimes } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    response.setHeader("Access-Control-Allow-Origin", "https://upstream.test");
    response.setHeader("X-Powered-By", "upstream").setHeader("Cache-Control", "no-cache");
    response.end(JSON.stringify({ url: request.url, fields: request.headers }));
  });
  return await serve(context, server);
}

interface Seen {
  url: string;
  fields: Record<string, string>;
}

async function ask(url: string, init: RequestInit = {}) {
  const answer = await fetch(url, { redirect: "manual", ...init });
  return { status: answer.status, fields: answer.headers, text: await answer.text() };
}

const readSeen = async (url: string, init: RequestInit = {}) =>
  JSON.parse((await ask(url, init)).text) as Seen;

// The one short test that starts the gateway on each runtime.
for (const runtime of runtimes) {
  const shared = shareGate({ runtime });
  const start = async (
    context: TestContext,
    routes: Record<string, unknown>[],
    more: object = {},
  ) => {
    const target = await startUpstream(context);
    const config = {
      ...more,
      routes: routes.map((route) =>
        "redirect" in route || "respond" in route ? route : { target, ...route },
      ),
    };
    return shared.use(config);
  };

  test(`CORS answers preflights before authentication, and replaces the upstream's fields (${runtime.name})`, async (context) => {
    const cors = {
      origins: ["https://app.test", "https://*.apps.test"],
      credentials: true,
      expose_headers: ["X-Total"],
    };
    const routes = [
      { prefix: "/api", cors, methods: ["GET", "PUT"] },
      { prefix: "/any", cors: { origins: ["*"] }, auth: { type: "none" } },
    ];
    const gate = await start(context, routes, { auth_token: "the-operator-token" });
    const preflight = (origin: string, path = "/api/x") =>
      ask(`${gate.url}${path}`, {
        method: "OPTIONS",
        headers: { Origin: origin, "Access-Control-Request-Method": "PUT" },
      });
    const allowed = await preflight("https://app.test");
    assert.equal(allowed.status, 204);
    assert.equal(allowed.fields.get("access-control-allow-origin"), "https://app.test");
    assert.equal(allowed.fields.get("access-control-allow-credentials"), "true");
    assert.equal(allowed.fields.get("access-control-allow-methods"), "GET, PUT");
    assert.equal(allowed.fields.get("access-control-allow-headers"), "Authorization, Content-Type");
    assert.equal(allowed.fields.get("access-control-max-age"), "600");
    assert.match(allowed.fields.get("vary") ?? "", /Origin/);
    assert.equal((await preflight("https://a.apps.test")).status, 204);
    for (const origin of [
      "https://evil.test",
      "https://apps.test",
      "http://app.test",
      "null",
      "https://app.test.evil",
      "https://evil.test#.apps.test",
      "https://evil.test/.apps.test",
      "https://evil.test?.apps.test",
      "https://user@evil.test:80.apps.test",
      "https://a..apps.test",
      "https://A.apps.test",
    ]) {
      const refused = await preflight(origin);
      assert.equal(refused.status, 403, origin);
      assert.equal(refused.fields.get("access-control-allow-origin"), null);
    }

    const headers = { Origin: "https://app.test" };
    const unauthorized = await ask(`${gate.url}/api/x`, { headers });
    assert.equal(unauthorized.status, 401);
    assert.equal(unauthorized.fields.get("access-control-allow-origin"), "https://app.test");
    const good = await ask(`${gate.url}/api/x`, {
      headers: { ...headers, Authorization: "Bearer the-operator-token" },
    });
    assert.equal(good.fields.get("access-control-allow-origin"), "https://app.test");
    assert.equal(good.fields.get("access-control-expose-headers"), "X-Total");
    const other = await ask(`${gate.url}/any`, { headers: { Origin: "https://evil.test" } });
    assert.equal(other.fields.get("access-control-allow-origin"), "*");
    assert.equal(other.fields.get("access-control-allow-credentials"), null);
  });

  test(`header rules change requests and responses (${runtime.name})`, async (context) => {
    const gate = await start(context, [
      {
        prefix: "/",
        request_headers: { set: { "X-Env": "prod" }, add: { "X-Tag": "b" }, remove: ["X-Secret"] },
        response_headers: { set: { "Cache-Control": "public" }, remove: ["X-Powered-By"] },
      },
    ]);
    const headers = { "X-Env": "forged", x_env: "forged", "X-Tag": "a", "X-Secret": "s" };
    const answer = await ask(gate.url, { headers });
    const { fields } = JSON.parse(answer.text) as Seen;
    assert.equal(fields["x-env"], "prod");
    assert.equal(fields["x-tag"], "a, b");
    assert.equal(fields["x-secret"], undefined);
    assert.equal(answer.fields.get("cache-control"), "public");
    assert.equal(answer.fields.get("x-powered-by"), null);
  });

  test(`paths are rewritten, redirected and answered by rule (${runtime.name})`, async (context) => {
    const gate = await start(context, [
      { prefix: "/v1", replace_prefix: "/internal/v2" },
      {
        prefix: "/blog",
        rewrite: [
          { pattern: "^/blog/(\\d{4})/(.+)$", to: "/posts/$2-$1" },
          { pattern: "^/blog/up/(.*)$", to: "/x/.$1" },
          { pattern: "^/blog/by/(?P<name>[a-z]+)$", to: "/authors/${name}/\\$" },
        ],
      },
      { prefix: "/old", redirect: { to: "https://{host}/new{rest}{query}", status: 301 } },
      { prefix: "/moved", redirect: { to: "/{rest}" } },
      { prefix: "/robots.txt", respond: { body: "User-agent: *\n" } },
      { prefix: "/nothing", respond: { status: 204 } },
      { prefix: "/teapot", respond: { status: 418, headers: { "X-Kind": "pot" } } },
    ]);
    assert.equal((await readSeen(`${gate.url}/v1/a?b=c`)).url, "/internal/v2/a?b=c");
    assert.equal((await readSeen(`${gate.url}/v1`)).url, "/internal/v2");
    assert.equal((await readSeen(`${gate.url}/blog/2024/hello?x=1`)).url, "/posts/hello-2024?x=1");
    assert.equal((await readSeen(`${gate.url}/blog/other`)).url, "/blog/other");
    assert.equal((await readSeen(`${gate.url}/blog/by/ann`)).url, "/authors/ann/$");
    assert.equal((await readSeen(`${gate.url}/blog/up/etc`)).url, "/x/.etc");
    assert.equal((await ask(`${gate.url}/blog/up/`)).status, 400, "the result ends with /.");
    const old = await ask(`${gate.url}/old/page?a=1`);
    assert.equal(old.status, 301);
    assert.equal(old.fields.get("location"), `https://${new URL(gate.url).host}/new/page?a=1`);
    const moved = await ask(`${gate.url}/moved//evil.test/x`);
    assert.deepEqual([moved.status, moved.fields.get("location")], [308, "/evil.test/x"]);
    const robots = await ask(`${gate.url}/robots.txt`);
    assert.equal(robots.text, "User-agent: *\n");
    assert.match(robots.fields.get("content-type") ?? "", /^text\/plain/);
    const nothing = await ask(`${gate.url}/nothing`);
    assert.deepEqual([nothing.status, nothing.fields.get("content-type")], [204, null]);
    const teapot = await ask(`${gate.url}/teapot`);
    assert.deepEqual([teapot.status, teapot.fields.get("x-kind"), teapot.text], [418, "pot", ""]);
  });
}
