// Identity and gateway as processes: the gateway accepts identity's tokens by key set and scope.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { awaitPort, findFreePort } from "../stage/process.ts";
import { Stage, type StagedGateway } from "../stage/stage.ts";

const bin = fileURLToPath(new URL("../../bin/platform-auth.js", import.meta.url));
const exampleFile = fileURLToPath(
  new URL("../../services/auth/examples/gateway.json", import.meta.url),
);
const guideFile = fileURLToPath(new URL("../../docs/guide/identity.md", import.meta.url));
const admin = { username: "root", password: "correct horse battery staple" };

const stage = new Stage();
let issuer: string;
let gateway: StagedGateway;

before(async () => {
  const port = await findFreePort();
  issuer = `http://127.0.0.1:${port}`;
  const auth = stage.start({
    name: "auth",
    command: process.execPath,
    args: [bin],
    cwd: stage.folder,
    env: {
      PLATFORM_AUTH_ADDR: `127.0.0.1:${port}`,
      PLATFORM_AUTH_PUBLIC_URL: issuer,
      PLATFORM_AUTH_DATA_DIR: join(stage.folder, "auth"),
      PLATFORM_AUTH_JWT_ALGORITHM: "ES256",
      PLATFORM_AUTH_ADMIN_USER: admin.username,
      PLATFORM_AUTH_ADMIN_PASSWORD: admin.password,
    },
  });
  await awaitPort(auth, port);
  const deadline = Date.now() + 30_000;
  while (!(await fetch(`${issuer}/readyz`)).ok) {
    assert.ok(Date.now() < deadline, auth.readOutput());
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const upstream = await stage.startUpstream("orders");
  // The example of the guide, with this test's addresses.
  const example = JSON.parse(
    readFileSync(exampleFile, "utf8").replaceAll("http://localhost:8086", issuer),
  ) as { routes: { prefix: string; auth: { required_scope: string } }[] };
  const [route] = example.routes;
  assert.ok(route !== undefined);
  const { required_scope: _scope, ...bearer } = route.auth;
  gateway = await stage.startGateway([
    { ...route, target: upstream.url },
    { prefix: "/any", target: upstream.url, auth: bearer },
    { prefix: "/other", target: upstream.url, auth: { ...bearer, audience: "other" } },
  ]);
});
after(() => stage[Symbol.asyncDispose]());

const send = async (
  path: string,
  body: unknown,
  token?: string,
): Promise<Record<string, unknown>> => {
  const response = await fetch(`${issuer}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${response.status} ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
};

const ask = async (path: string, token?: string): Promise<number> => {
  const response = await fetch(`${gateway.url}${path}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  await response.arrayBuffer();
  return response.status;
};

test("the guide contains the example", () => {
  assert.ok(readFileSync(guideFile, "utf8").includes(readFileSync(exampleFile, "utf8")));
});

test("the gateway accepts only tokens of identity with the required scope", async () => {
  const root = await send("/api/auth/login", admin);
  const rootToken = String(root["access_token"]);
  for (const name of ["orders.read", "orders.write"]) {
    await send("/api/v1/auth/scopes", { name, permissions: [name.replace(".", ":")] }, rootToken);
  }
  // Other nodes see scopes within a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const withAll = await send("/api/auth/login", admin);
  const withLess = await send("/api/auth/login", { ...admin, scope: "openid orders.write" });
  const all = String(withAll["access_token"]);
  const less = String(withLess["access_token"]);

  assert.equal(await ask("/orders/1"), 401);
  assert.equal(await ask("/orders/1", "a.b.c"), 401);
  assert.equal(await ask("/orders/1", `${all.slice(0, -4)}AAAA`), 401);
  assert.equal(await ask("/orders/1", all), 200);
  assert.equal(await ask("/orders/1", less), 403, "the scope is missing");
  assert.equal(await ask("/any/1", less), 200);
  assert.equal(await ask("/other/1", all), 401, "for another audience");
  assert.equal(await ask("/any/1", String(withAll["refresh_token"])), 401);

  const { kid } = await send("/api/v1/auth/keys/rotate", { mode: "immediate" }, rootToken);
  const fresh = await send("/api/auth/login", admin);
  const token = String(fresh["access_token"]);
  const header = Buffer.from(token.split(".")[0]!, "base64url").toString("utf8");
  assert.equal((JSON.parse(header) as Record<string, unknown>)["kid"], kid);
  // An unknown key is fetched at most every 10 s.
  const deadline = Date.now() + 12_000;
  while ((await ask("/orders/1", token)) !== 200) {
    assert.ok(Date.now() < deadline, "the gateway never learnt of the new key");
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  assert.equal(await ask("/orders/1", all), 200, "tokens of before stay good");
});
