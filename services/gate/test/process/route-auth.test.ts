// `auth` of routes at the real gateway: tokens by key set alone, workloads, and requests that another service judges.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { test, type TestContext } from "node:test";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";
import { makeFolder, runtimesOfRules, spawnGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate } from "../fixture/shared-gate.ts";

const TOKEN = "the-operator-token-of-this-test";
const keys = await generateKeyPair("ES256");
const jwk = { ...(await exportJWK(keys.publicKey)), kid: "k1", use: "sig" };

const sign = (payload: JWTPayload, typ = "JWT") =>
  new SignJWT(payload)
    .setProtectedHeader({ alg: "ES256", kid: "k1", typ })
    .setExpirationTime("5m")
    .sign(keys.privateKey);

async function listen(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  return await serve(context, server);
}

const startUpstream = (context: TestContext) =>
  listen(context, (request, response) => response.end(JSON.stringify(request.headers)));
const startIssuer = (context: TestContext) =>
  listen(context, (_request, response) => response.end(JSON.stringify({ keys: [jwk] })));

async function ask(url: string, headers: Record<string, string> = {}, init: RequestInit = {}) {
  const answer = await fetch(url, { ...init, headers, redirect: "manual" });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text };
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

for (const runtime of runtimesOfRules) {
  const shared = shareGate({ runtime, config: { workers: 1, auth_token: TOKEN } });

  test(`auth with a key set alone verifies the signature and the scope (${runtime.name})`, async (context) => {
    const target = await startUpstream(context);
    const auth = { type: "bearer", jwks_url: await startIssuer(context), required_scope: "orders" };
    const gate = await shared.use({ routes: [{ prefix: "/", target, auth }] });
    const good = await ask(gate.url, bearer(await sign({ sub: "ada", scope: "read orders" })));
    assert.equal(good.status, 200);
    assert.equal(JSON.parse(good.text)["x-user-id"], "ada");
    assert.equal((await ask(gate.url, bearer(await sign({ scope: "read" })))).status, 403);
    const token = await sign({ scope: "orders" });
    assert.equal((await ask(gate.url, bearer(`${token.slice(0, -8)}AAAAAAAA`))).status, 401);
    assert.equal((await ask(gate.url)).status, 401);
    assert.equal((await ask(gate.url, bearer(TOKEN))).status, 401);
    const warning = gate.lines().find(({ msg }) => msg.startsWith("auth has no issuer"));
    assert.equal(warning?.["route"], "/");
  });

  test(`strict_token_binding refuses auth without issuer (${runtime.name})`, async (context) => {
    const auth = { type: "bearer", jwks_url: "http://127.0.0.1:9/jwks" };
    const gate = spawnGate(context, {
      runtime,
      config: { strict_token_binding: true, routes: [{ prefix: "/", target: "http://t", auth }] },
    });
    const { code, stderr, stdout } = await gate.ended;
    assert.notEqual(code, 0);
    assert.match(stderr + stdout, /route \/: auth\.issuer is required with strict_token_binding/);
  });

  test(`workloads of the trust domain are admitted by their JWT-SVID (${runtime.name})`, async (context) => {
    const auth = {
      type: "workload",
      jwks_url: await startIssuer(context),
      audience: "gateway",
      trust_domain: "prod.test",
    };
    const target = await startUpstream(context);
    const gate = await shared.use({ routes: [{ prefix: "/", target, auth }] });
    const api = { sub: "spiffe://prod.test/api", aud: "gateway" };
    const { status, text } = await ask(gate.url, bearer(await sign(api)));
    assert.equal(status, 200);
    assert.equal(decodeURIComponent(JSON.parse(text)["x-user-id"]), "spiffe://prod.test/api");
    const other = await sign({ ...api, sub: "spiffe://dev.test/api" });
    assert.equal((await ask(gate.url, bearer(other))).status, 401);
    assert.equal((await ask(gate.url, bearer(await sign({ ...api, aud: "x" })))).status, 401);
  });

  test(`another service admits, changes or answers requests (${runtime.name})`, async (context) => {
    const seen: Record<string, unknown>[] = [];
    const judge = await listen(context, (request, response) => {
      seen.push({ ...request.headers, method: request.method });
      const { cookie, "x-forwarded-uri": uri } = request.headers;
      if (uri === "/slow") return;
      if (cookie === "session=ada") response.setHeader("Remote-User", "ada").end("ignored");
      else {
        response.setHeader("Set-Cookie", ["a=1", "b=2"]).setHeader("Location", "/login");
        response.writeHead(302).end("sign in");
      }
    });
    const target = await startUpstream(context);
    const auth = {
      type: "forward",
      url: judge,
      upstream_headers: ["Remote-User"],
      timeout_ms: 500,
    };
    const gate = await shared.use({ routes: [{ prefix: "/", target, auth }] });
    const headers = {
      Cookie: "session=ada",
      "Remote-User": "forged",
      "X-Forwarded-Uri": "/forged",
      X_Forwarded_Uri: "/forged",
      "X-Original-URL": "/forged",
      REMOTE_USER: "forged",
      "X-User-Id": "forged",
      ...bearer(TOKEN),
    };
    const init = { method: "POST", body: "{}" };
    const good = await ask(`${gate.url}/a%20b?q=1`, headers, init);
    assert.equal(good.status, 200);
    assert.equal(JSON.parse(good.text)["remote-user"], "ada");
    assert.equal(JSON.parse(good.text)["authorization"], undefined);
    const [judged] = seen;
    assert.equal(judged!["method"], "GET");
    assert.ok(
      !JSON.stringify(judged).includes("forged"),
      "the service gets what the gateway knows",
    );
    assert.ok(!good.text.includes("forged"), good.text);
    assert.equal(judged!["x-forwarded-method"], "POST");
    assert.equal(judged!["x-forwarded-uri"], "/a%20b?q=1");
    assert.equal(judged!["x-forwarded-host"], new URL(gate.url).host);
    assert.equal(judged!["x-forwarded-for"], "127.0.0.1");
    assert.equal(
      judged!["authorization"],
      undefined,
      "the operator token is not shown to services",
    );
    assert.equal(judged!["content-length"], undefined);

    const refused = await ask(gate.url, { "Remote-User": "forged" });
    assert.equal(refused.status, 302);
    assert.equal(refused.headers.get("location"), "/login");
    assert.deepEqual(refused.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.equal(refused.text, "sign in");

    const late = await ask(`${gate.url}/slow`, headers);
    assert.equal(late.status, 503);
    assert.ok(late.headers.get("retry-after"));
    const line = await gate.waitForLine(({ msg }) => msg.startsWith("the forward-auth service"));
    assert.equal(line["level"], "warn");
  });

  test(`auth refuses settings of another type by name (${runtime.name})`, async (context) => {
    const auth = { type: "forward", issuer: "http://x" };
    const gate = spawnGate(context, {
      runtime,
      folder: makeFolder(context),
      config: { routes: [{ prefix: "/", target: "http://t", auth }] },
      args: ["validate"],
    });
    const { stderr } = await gate.ended;
    assert.match(stderr, /auth\.issuer: .*type "forward" does not use it/);
    assert.match(stderr, /auth\.url: .*type "forward" requires it/);
  });
}
