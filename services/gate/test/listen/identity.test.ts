// Tokens at a real worker: who gets through, what the upstream learns of them, and what it never sees.
import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { describeOperatorToken, type GlobalSpec } from "../../src/shared-state/index.ts";
import {
  ask,
  sendRaw,
  startGate,
  startUpstream,
  type GateWorker,
  type TestRoute,
} from "./gate-worker.ts";

const OPERATOR = "operator-token-of-some-length";
const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const folder = mkdtempSync(join(tmpdir(), "gate-identity-"));
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
after(() => rmSync(folder, { recursive: true }));

const operator: Partial<GlobalSpec> = {
  operatorTokens: [describeOperatorToken(OPERATOR)],
};
const jwt: Partial<GlobalSpec> = { jwt: { secret: SECRET, leewaySeconds: 0 } };

async function startEchoGate(
  globals: Partial<GlobalSpec>,
  routes: Partial<TestRoute>[] = [{}],
): Promise<GateWorker> {
  const upstream = await startUpstream((request, response) =>
    response.end(JSON.stringify(request.headers)),
  );
  stops.push(upstream.stop);
  const gate = await startGate(
    routes.map((route) => ({ targets: [upstream.url], ...route })),
    globals,
  );
  stops.push(() => gate.stop());
  return gate;
}

/** A control plane on a Unix socket that tells what it was sent. */
async function startControl(): Promise<GlobalSpec["control"]> {
  const socketPath = join(folder, `control-${stops.length}-${process.hrtime.bigint()}.sock`);
  const server = createServer((request, response) => {
    response.end(JSON.stringify({ url: request.url, headers: request.headers }));
  });
  server.listen(socketPath);
  await once(server, "listening");
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { socketPath, secret: "per-start-secret" };
}

function makeJwt(claims: Record<string, unknown>, secret = SECRET, header = {}): string {
  const encode = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 60;
  const signed = `${encode({ alg: "HS256", typ: "JWT", ...header })}.${encode({ exp, ...claims })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

function bearer(token: string): { headers: Record<string, string> } {
  return { headers: { Authorization: `Bearer ${token}` } };
}

test("with a static token routes and admin paths are closed, and the token is not forwarded", async () => {
  const gate = await startEchoGate({ ...operator, control: await startControl() });
  for (const path of ["/", "/api/v1/routes"]) {
    const none = await ask(gate.port, path);
    assert.deepEqual([none.status, none.headers["www-authenticate"]], [401, "Bearer"], path);
    const wrong = await ask(gate.port, path, bearer("wrong"));
    assert.equal(wrong.status, 401, path);
    assert.match(wrong.headers["www-authenticate"] ?? "", /invalid_token/);
    const right = await ask(gate.port, path, bearer(OPERATOR));
    assert.equal(right.status, 200, path);
    assert.ok(!right.body.includes(OPERATOR), path);
  }
  for (const probe of ["/healthz", "/readyz"])
    assert.notEqual((await ask(gate.port, probe)).status, 401);
});

test("open routes do not forward the operator token, but other credentials", async () => {
  const gate = await startEchoGate(operator, [{ auth: { type: "none" } }]);
  assert.equal(
    JSON.parse((await ask(gate.port, "/", bearer(OPERATOR))).body).authorization,
    undefined,
  );
  const other = JSON.parse((await ask(gate.port, "/", bearer("for-upstream"))).body);
  assert.equal(other.authorization, "Bearer for-upstream");
  assert.equal((await ask(gate.port, "/")).status, 200);
});

const oddForms: [name: string, lines: string[]][] = [
  ["a tab behind the scheme", [`Bearer\t${OPERATOR}`]],
  ["several spaces", [`bearer   ${OPERATOR}  `]],
  ["a comma behind it", [`Bearer ${OPERATOR},`]],
  ["a comma before it", [`Bearer ,${OPERATOR}`]],
  ["quotes", [`Bearer "${OPERATOR}"`]],
  ["a parameter", [`Bearer token=${OPERATOR}`]],
  ["no scheme", [OPERATOR]],
  ["another scheme", [`Token ${OPERATOR}`]],
  ["a list", [`Basic YTpi, Bearer ${OPERATOR}`]],
  ["more text on both sides", [`Bearer x${OPERATOR}y`]],
  ["a second line", ["Basic YTpi", `Bearer ${OPERATOR}`]],
  ["a first line", [`Bearer ${OPERATOR}`, "Basic YTpi"]],
  ["a password", [`Basic ${Buffer.from(`admin:${OPERATOR}`).toString("base64")}`]],
];
test("the operator token is not forwarded in any form", async () => {
  const open = await startEchoGate(operator, [{ auth: { type: "none" } }]);
  const closed = await startEchoGate(operator);
  for (const [name, lines] of oddForms) {
    const fields = lines.map((line) => `Authorization: ${line}\r\n`).join("");
    const request = `GET / HTTP/1.1\r\nHost: a\r\n${fields}X-Kept: 1\r\nConnection: close\r\n\r\n`;
    const text = await sendRaw(open.port, request);
    assert.match(text, /^HTTP\/1\.1 200 /, name);
    const headers = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4)) as Record<string, string>;
    assert.equal(headers["authorization"], undefined, name);
    assert.equal(headers["x-kept"], "1", name);
    const refused = await sendRaw(closed.port, request);
    if (name === "several spaces") assert.ok(!refused.includes(OPERATOR));
    else assert.match(refused, /^HTTP\/1\.1 401 /, name);
  }
});

test("Authorization that only resembles the operator token is forwarded unchanged", async () => {
  const gate = await startEchoGate(operator, [{ auth: { type: "none" } }]);
  for (const value of [
    `Bearer ${OPERATOR.slice(1)}`,
    `Bearer ${OPERATOR.slice(0, -1)}`,
    `Bearer ${OPERATOR.toUpperCase()}`,
    "Basic YTpi",
    "Digest username=a, realm=b",
  ]) {
    const answer = await ask(gate.port, "/", { headers: { Authorization: value } });
    assert.equal((JSON.parse(answer.body) as Record<string, string>)["authorization"], value);
  }
});

test("without a token, OPTIONS * and unknown paths are 401", async () => {
  const gate = await startEchoGate(operator, [{ prefix: "/known" }]);
  const options = (fields: string): Promise<string> =>
    sendRaw(gate.port, `OPTIONS * HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`);
  assert.match(await options(""), /^HTTP\/1\.1 401 [^]*WWW-Authenticate: Bearer/i);
  assert.match(await options(`Authorization: Bearer ${OPERATOR}\r\n`), /^HTTP\/1\.1 204 /);
  const none = await ask(gate.port, "/unknown");
  assert.deepEqual([none.status, none.headers["www-authenticate"]], [401, "Bearer"]);
  assert.equal((await ask(gate.port, "/unknown", bearer("wrong"))).status, 401);
  assert.equal((await ask(gate.port, "/unknown", bearer(OPERATOR))).status, 502);
  const open = await startEchoGate({}, [{ prefix: "/known" }]);
  assert.equal((await ask(open.port, "/unknown")).status, 502);
  assert.match(
    await sendRaw(open.port, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    /^HTTP\/1\.1 204 /,
  );
});

test("a path parameter does not bypass a guarded route", async () => {
  const gate = await startEchoGate({ ...operator, control: await startControl() }, [
    { prefix: "/open", auth: { type: "none" } },
    { prefix: "/open/secret" },
    { prefix: "/open/shop/item", auth: { type: "none" } },
    { prefix: "/open/strip", auth: { type: "none" }, stripPrefix: true },
  ]);
  for (const path of [
    "/open/secret;a",
    "/open/secret;a/x",
    "/open/secret;/x",
    "/open/;a/secret",
    "/open/;/secret;b=c/d",
    "/open/%73ecret;a",
    "/open/strip;a/x",
    "/api/v1/routes;a",
    "/healthz;a",
  ]) {
    const answer = await ask(gate.port, path);
    assert.deepEqual(
      [answer.status, (JSON.parse(answer.body) as { code: string }).code],
      [400, "bad_request"],
      path,
    );
  }
  for (const path of [
    "/open;a",
    "/open/x;a=1/y;b",
    "/open/shop/item;color=red/1",
    "/open/strip/x;a",
  ])
    assert.equal((await ask(gate.port, path)).status, 200, path);
  for (const path of ["/open;a/secret", "/open/secret/x;a"])
    assert.equal((await ask(gate.port, path)).status, 401, path);
  assert.equal((await ask(gate.port, "/open/secret/x;a", bearer(OPERATOR))).status, 200);
});

test("configured identity fields are removed, including aliases", async () => {
  const sent = {
    "X-User": "root",
    X_User: "root",
    "X-Forwarded-User": "root",
    X_Forwarded_User: "root",
    "Remote-User": "root",
    Remote_User: "root",
    REMOTE_USER: "root",
    "X-SSL-Client-Cert": "root",
    "X-Original-URL": "/root",
    "X-Rewrite-URL": "/root",
    X_Forwarded_Uri: "/root",
    "X_SSL-Client_Cert": "root",
    "X-Own": "kept or cut",
    X_Own: "kept or cut",
  };
  const gate = await startEchoGate({}, [
    { prefix: "/default" },
    { prefix: "/own", cutFields: ["x_own"] },
  ]);
  const read = async (path: string): Promise<string> =>
    (await ask(gate.port, path, { headers: sent })).body;
  const byDefault = await read("/default");
  assert.ok(!byDefault.includes("root"), byDefault);
  assert.ok(byDefault.includes("kept or cut"));
  const own = await read("/own");
  assert.ok(own.includes("root") && !own.includes("kept or cut"), own);
});

test("a user's claims replace whatever identity the client claims", async () => {
  const gate = await startEchoGate(jwt);
  const token = makeJwt({ sub: "u-1", roles: ["dev", "ö,x"], tenant: "t-1" });
  const answer = await ask(gate.port, "/", {
    headers: { Authorization: `Bearer ${token}`, "X-User-Id": "root", "X-User-Roles": "admin" },
  });
  const headers = JSON.parse(answer.body) as Record<string, string>;
  assert.equal(headers["x-user-id"], "u-1");
  assert.equal(headers["x-user-roles"], "dev,%C3%B6%2Cx");
  assert.equal(headers["x-tenant-id"], "t-1");
  assert.equal(headers["authorization"], `Bearer ${token}`);
  const bare = JSON.parse((await ask(gate.port, "/", bearer(makeJwt({})))).body);
  for (const name of ["x-user-id", "x-user-roles", "x-tenant-id"])
    assert.equal(bare[name], undefined);
});

test("tokens that are forged, expired or malformed are 401", async () => {
  const gate = await startEchoGate({ ...jwt, ...operator });
  const tokens = [
    makeJwt({ sub: "a" }, "another-secret-of-thirty-two-bytes!!"),
    makeJwt({ sub: "a", exp: 1 }),
    makeJwt({ sub: "a", exp: undefined }),
    makeJwt({ sub: "a", exp: "9999999999" }),
    makeJwt({ sub: "a", nbf: 9_999_999_000 }),
    makeJwt({ sub: "a" }, SECRET, { alg: "RS256", kid: "k" }),
    makeJwt({ sub: "a" }, SECRET, { alg: "HS512" }),
    makeJwt({ sub: "a" }, SECRET, { crit: ["x"], x: 1 }),
    makeJwt({ sub: "a", padding: "x".repeat(15_000) }),
    "a.b.c",
    `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"exp":9999999999}').toString("base64url")}.`,
  ];
  for (const token of tokens) {
    const answer = await ask(gate.port, "/", bearer(token));
    assert.equal(answer.status, 401, token);
    assert.equal((JSON.parse(answer.body) as { code: string }).code, "unauthorized");
    assert.ok(!answer.body.includes(token));
    assert.equal(answer.headers["www-authenticate"], 'Bearer error="invalid_token"');
    // A reason is for holders of a token that the issuer has signed.
    const { detail } = JSON.parse(answer.body) as { detail: string };
    const isSigned = token === tokens[1] || token === tokens[4];
    const reason = token === tokens[1] ? "The token has expired." : "The token is not valid yet.";
    assert.equal(detail, isSigned ? reason : "The token is not valid.", token);
  }
  assert.equal((await ask(gate.port, "/", bearer(makeJwt({ sub: "a" })))).status, 200);
  assert.equal((await ask(gate.port, "/", bearer(OPERATOR))).status, 200);
  const basic = { headers: { Authorization: `Basic ${OPERATOR}` } };
  assert.equal((await ask(gate.port, "/", basic)).status, 401);
});

test("admin paths require the scope gate:admin, no role suffices, and the control plane receives the caller", async () => {
  const gate = await startEchoGate({ ...jwt, ...operator, control: await startControl() });
  const path = "/api/v1/routes?x=1";
  for (const claims of [{ sub: "u" }, { sub: "u", roles: ["admin"], scope: "openid" }]) {
    const user = await ask(gate.port, path, bearer(makeJwt(claims)));
    assert.equal(user.status, 403);
    assert.match(user.headers["www-authenticate"] ?? "", /insufficient_scope/);
  }
  const callers: [string, string][] = [
    [makeJwt({ sub: "ann ö", scope: "*:*" }), "user ann%20%C3%B6"],
    [makeJwt({ sub: "bob", scope: "x gate:admin" }), "user bob"],
    [OPERATOR, "operator"],
  ];
  for (const [token, caller] of callers) {
    const answer = await ask(gate.port, path, {
      headers: {
        Authorization: `Bearer ${token}`,
        "X-Platform-Gate-Secret": "guess",
        "X-Platform-Gate-Caller": "operator",
      },
    });
    const seen = JSON.parse(answer.body) as { url: string; headers: Record<string, string> };
    assert.equal(seen.url, path);
    assert.equal(seen.headers["x-platform-gate-secret"], "per-start-secret");
    assert.equal(seen.headers["x-platform-gate-caller"], caller);
    assert.equal(seen.headers["authorization"], undefined);
  }
});

test("the scope gate:read opens admin paths for reading, and the control plane receives a reader", async () => {
  const gate = await startEchoGate({ ...jwt, ...operator, control: await startControl() });
  const reader = bearer(makeJwt({ sub: "rita", scope: "gate:read" }));
  const read = await ask(gate.port, "/api/v1/routes", reader);
  assert.equal(read.status, 200);
  const seen = JSON.parse(read.body) as { headers: Record<string, string> };
  assert.equal(seen.headers["x-platform-gate-caller"], "reader rita");
  for (const method of ["POST", "DELETE", "PUT", "PATCH", "OPTIONS"]) {
    const answer = await ask(gate.port, "/api/v1/routes", { ...reader, method });
    assert.equal(answer.status, 403, method);
    assert.match(answer.headers["www-authenticate"] ?? "", /scope="gate:admin"/);
  }
  const both = bearer(makeJwt({ sub: "ann", scope: "gate:read gate:admin" }));
  const all = await ask(gate.port, "/api/v1/routes", both);
  assert.match(all.body, /"x-platform-gate-caller":"user ann"/);
});

test("without tokens, admin paths are available to this machine, not to proxies or web pages", async () => {
  const gate = await startEchoGate({ control: await startControl() });
  const path = "/api/v1/routes";
  const plain = await ask(gate.port, path);
  assert.equal(plain.status, 200);
  assert.equal(JSON.parse(plain.body).headers["x-platform-gate-caller"], "local");
  const own = `http://127.0.0.1:${gate.port}`;
  const allowed: Record<string, string>[] = [
    { Origin: own, "Sec-Fetch-Site": "same-origin" },
    { "Sec-Fetch-Site": "none" },
    { Host: "localhost:80" },
    { Host: "[::1]" },
  ];
  for (const headers of allowed) {
    assert.equal((await ask(gate.port, path, { headers })).status, 200, JSON.stringify(headers));
  }
  const refused: Record<string, string>[] = [
    { Host: "gate.example" },
    { Host: "127.0.0.1.example" },
    { "X-Forwarded-For": "127.0.0.1" },
    { X_Forwarded_For: "127.0.0.1" },
    { Forwarded: "for=127.0.0.1" },
    { Via: "1.1 nginx" },
    { Origin: "http://evil.example" },
    { Origin: "null" },
    { "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
  ];
  for (const headers of refused) {
    assert.equal((await ask(gate.port, path, { headers })).status, 403, JSON.stringify(headers));
  }
  assert.equal(
    (await ask(gate.port, "/ui/app.js", { headers: { Host: "gate.example" } })).status,
    200,
  );
});

test("a route's own auth verifies the issuer's keys and scope, with one fetch for many waiting requests", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let fetches = 0;
  const issuer = await startUpstream((_request, response) => {
    fetches++;
    const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" };
    setTimeout(() => response.end(JSON.stringify({ keys: [jwk] })), 50);
  });
  stops.push(issuer.stop);
  const auth = {
    type: "bearer",
    jwksUrl: `${issuer.url}/jwks`,
    requiredScope: "read",
    issuer: "https://issuer.example",
    audience: "gate",
  } as const;
  const gate = await startEchoGate(operator, [{ auth }]);
  const make = (claims: object): string => {
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const exp = Math.floor(Date.now() / 1000) + 60;
    const body = { iss: auth.issuer, aud: auth.audience, exp, sub: "u", ...claims };
    const signed = `${encode({ alg: "ES256", typ: "at+jwt", kid: "k1" })}.${encode(body)}`;
    const signature = sign("sha256", Buffer.from(signed), {
      key: privateKey,
      dsaEncoding: "ieee-p1363",
    });
    return `${signed}.${signature.toString("base64url")}`;
  };
  const good = make({ scope: "read write" });
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => ask(gate.port, "/", bearer(good))),
  );
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [200, 200, 200, 200, 200],
  );
  assert.equal(fetches, 1);
  assert.equal((await ask(gate.port, "/", bearer(make({ scope: "write" })))).status, 403);
  assert.equal(
    (await ask(gate.port, "/", bearer(make({ scope: "read", aud: "other" })))).status,
    401,
  );
  assert.equal((await ask(gate.port, "/", bearer(OPERATOR))).status, 401);
  assert.equal((await ask(gate.port, "/")).status, 401);
  await issuer.stop();
  assert.equal((await ask(gate.port, "/", bearer(make({ scope: "read", sub: "v" })))).status, 200);
});

test("tokens are 503 until the issuer's keys have been fetched, and clients may disconnect meanwhile", async () => {
  const auth = {
    type: "bearer",
    jwksUrl: "http://127.0.0.1:1/jwks",
    issuer: "https://issuer.example",
    audience: "gate",
  } as const;
  const gate = await startEchoGate({}, [{ auth }]);
  const parts = [{ alg: "ES256", typ: "at+jwt", kid: "k" }, { exp: 9_999_999_999 }];
  const token = `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.AAAA`;
  const controller = new AbortController();
  const left = fetch(`http://127.0.0.1:${gate.port}/`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: controller.signal,
  }).catch(() => "left");
  controller.abort();
  assert.equal(await left, "left");
  const answer = await ask(gate.port, "/", bearer(token));
  assert.equal(answer.status, 503);
  assert.ok(Number(answer.headers["retry-after"]) >= 1);
  await waitFor(() => gate.logs.some((log) => log.msg.includes("keys")));
});
