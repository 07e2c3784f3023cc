// Routes of users with gate:admin: they open no file, variable or address that the configuration does not allow.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import {
  type GateProcess,
  makeFolder,
  runtimesOfRules,
  startGate,
} from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";

const TOKEN = "the-operator-token-of-this-test";
const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const OPERATOR = `Bearer ${TOKEN}`;
const ADMIN = signAdmin();

type Gate = GateProcess & { url: string };

function signAdmin(): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 600;
  const claims = { exp, sub: "ann", scope: "gate:admin" };
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  const signature = createHmac("sha256", SECRET).update(signed).digest("base64url");
  return `Bearer ${signed}.${signature}`;
}

async function send(gate: Gate, caller: string, body: object, path = "/api/v1/routes") {
  const answer = await fetch(`${gate.url}${path}`, {
    method: "POST",
    headers: { Authorization: caller, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

async function read(gate: Gate, path: string): Promise<[status: number, text: string]> {
  const answer = await fetch(`${gate.url}${path}`);
  return [answer.status, await answer.text()];
}

function start(
  context: TestContext,
  folder: string,
  config: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<Gate> {
  return startGate(context, {
    runtime: runtimesOfRules[0]!,
    folder,
    config: { auth_token: TOKEN, jwt_secret: SECRET, workers: 1, routes: [], ...config },
    env: { ...env, PLATFORM_OF_ANOTHER: "a-secret", PLATFORM_GATE_ROUTE_SHOP: "for-routes" },
  });
}

const open = { auth: { type: "none" } } as const;
const files = (prefix: string, root: string) => ({ prefix, files: { root }, ...open });

/** A folder as `platform up` makes it: secrets beside the gateway's configuration. */
function makeData(context: TestContext) {
  const data = makeFolder(context);
  const folder = join(data, "gate");
  mkdirSync(join(folder, "public", "site"), { recursive: true });
  writeFileSync(join(data, "credentials.env"), "PLATFORM_GATE_AUTH_TOKEN=secret\n");
  writeFileSync(join(folder, "public", "site", "page.txt"), "a page");
  return { data, folder, roots: join(folder, "public") };
}

test("a user with gate:admin opens only files below files_roots, the operator any", async (context) => {
  const { data, folder, roots } = makeData(context);
  symlinkSync(data, join(roots, "out"));
  symlinkSync(join(data, "credentials.env"), join(roots, "list.txt"));
  const gate = await start(context, folder);

  const outside = join(data, "credentials.env");
  const target = "http://127.0.0.1:9";
  const refused: [field: string, route: object][] = [
    ["files.root", files("/x", data)],
    ["files.root", files("/x", join(roots, ".."))],
    ["files.root", files("/x", `${roots}-of-another`)],
    ["openapi", { prefix: "/x", target, openapi: outside }],
    ["root_ca_path", { prefix: "/x", target, root_ca_path: outside }],
    [
      "client_cert_path",
      { prefix: "/x", target, client_cert_path: outside, client_key_path: outside },
    ],
    ["ip_allowlist_file", { prefix: "/x", target, ip_allowlist_file: outside }],
    ["ip_blocklist_file", { prefix: "/x", target, ip_blocklist_file: outside }],
    ["ip_blocklist_file", { prefix: "/x", target, ip_blocklist_file: join(roots, "list.txt") }],
    [
      "auth.client_secret_file",
      {
        prefix: "/x",
        target,
        auth: {
          type: "oidc",
          issuer: "https://i.example",
          client_id: "c",
          client_secret_file: outside,
        },
      },
    ],
  ];
  for (const [field, route] of refused) {
    const { status, text } = await send(gate, ADMIN, route);
    assert.equal(status, 400, JSON.stringify(route));
    assert.match(text, new RegExp(`${field.replace(".", "\\.")}.*files_roots`));
    assert.doesNotMatch(text, /secret\\n|AUTH_TOKEN/);
    assert.equal((await send(gate, ADMIN, route, "/api/v1/routes/check")).status, 400);
  }
  const sync = { routes: [files("/x", data)] };
  assert.equal((await send(gate, ADMIN, sync, "/api/v1/admin/console/sync")).status, 400);
  const registration = {
    service: "s",
    base_url: target,
    routes: [{ path: "/x", openapi: outside }],
  };
  assert.equal((await send(gate, ADMIN, registration, "/api/v1/routes/register")).status, 400);

  assert.equal((await send(gate, ADMIN, files("/site", join(roots, "site")))).status, 200);
  assert.deepEqual(await read(gate, "/site/page.txt"), [200, "a page"]);
  assert.equal((await send(gate, OPERATOR, files("/all", data))).status, 200);
  assert.equal((await read(gate, "/all/credentials.env"))[0], 200);
});

test("a link that leads out later is refused when a file is opened, also after a restart", async (context) => {
  const { data, folder, roots } = makeData(context);
  const gate = await start(context, folder);
  assert.equal((await send(gate, ADMIN, files("/site", join(roots, "site")))).status, 200);
  renameSync(join(roots, "site"), join(roots, "old"));
  symlinkSync(data, join(roots, "site"));
  assert.equal((await read(gate, "/site/credentials.env"))[0], 404);
  // A link within the folders is a deployment.
  rmSync(join(roots, "site"));
  symlinkSync("old", join(roots, "site"));
  assert.deepEqual(await read(gate, "/site/page.txt"), [200, "a page"]);

  gate.signal("SIGTERM");
  await gate.ended;
  rmSync(join(roots, "site"));
  symlinkSync(data, join(roots, "site"));
  const next = await start(context, folder);
  assert.equal((await read(next, "/site/credentials.env"))[0], 404);
});

test("variables and private addresses of users' routes are those of the configuration", async (context) => {
  const { folder } = makeData(context);
  const server = createServer((_, response) => response.end("upstream"));
  const target = await serve(context, server);
  const named = { prefix: "/named", target: "http://metadata.test", ...open };
  const gate = await start(context, folder, { routes: [{ prefix: "/own", target }] });
  const signIn = (name: string) => ({
    prefix: "/in",
    target,
    auth: { type: "oidc", issuer: "https://i.example", client_id: "c", client_secret_env: name },
  });
  const foreign = await send(gate, ADMIN, signIn("PLATFORM_OF_ANOTHER"));
  assert.equal(foreign.status, 400);
  assert.match(foreign.text, /auth\.client_secret_env.*secret_variables/);
  assert.equal((await send(gate, ADMIN, signIn("PLATFORM_GATE_ROUTE_SHOP"))).status, 200);
  assert.equal((await send(gate, OPERATOR, signIn("PLATFORM_OF_ANOTHER"))).status, 200);

  const metadata = "http://169.254.169.254";
  const refused: object[] = [
    { prefix: "/x", target: metadata },
    { prefix: "/x", target: "http://[fe80::1]" },
    { prefix: "/x", target: "http://2852039166" },
    { prefix: "/x", target: "http://[::ffff:169.254.169.254]" },
    { prefix: "/x", targets: [target, metadata] },
    {
      prefix: "/x",
      targets_weighted: [
        { url: target, weight: 1 },
        { url: metadata, weight: 0 },
      ],
    },
    { prefix: "/x", target, mirror: { target: metadata } },
    { prefix: "/x", target, auth: { type: "forward", url: metadata } },
    { prefix: "/x", target, auth: { type: "bearer", jwks_url: metadata } },
  ];
  for (const route of refused) {
    const { status, text } = await send(gate, ADMIN, route);
    assert.equal(status, 400, JSON.stringify(route));
    assert.match(text, /private_networks/);
  }
  assert.equal((await send(gate, ADMIN, { prefix: "/up", target, ...open })).status, 200);
  assert.deepEqual(await read(gate, "/up"), [200, "upstream"]);
  assert.equal((await send(gate, ADMIN, named)).status, 200);
});

test("a user's route stays limited, and one that a user leaves as it was does not become so", async (context) => {
  const { data, folder, roots } = makeData(context);
  const gate = await start(context, folder, { routes: [files("/base", data)] });
  const show = async () => {
    const answer = await fetch(`${gate.url}/api/v1/routes`, { headers: { Authorization: ADMIN } });
    return (await answer.json()) as { prefix: string; confined?: true }[];
  };
  assert.equal((await send(gate, ADMIN, files("/site", roots))).status, 200);
  assert.deepEqual(
    (await show()).map(({ confined }) => confined),
    [undefined, true],
  );
  // The snapshot that the console sends back contains the configured route.
  assert.equal(
    (await send(gate, ADMIN, { routes: await show() }, "/api/v1/admin/console/sync")).status,
    200,
  );
  assert.deepEqual(
    (await show()).map(({ confined }) => confined),
    [undefined, true],
  );
  assert.equal(
    (await send(gate, ADMIN, { ...files("/base", data), access_log: true })).status,
    400,
  );
  assert.equal((await send(gate, ADMIN, { ...files("/site", data), confined: false })).status, 400);
});

test("files_roots that contain the configuration or the state are refused", async (context) => {
  const { folder, data } = makeData(context);
  for (const root of [folder, data, join(folder, "gate.json.state")]) {
    const start_ = start(context, folder, { files_roots: [root] });
    await assert.rejects(start_, /files_roots\[0\].*users could publish/s);
  }
});
