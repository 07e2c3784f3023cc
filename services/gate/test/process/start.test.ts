// The gateway as a process: what it accepts, what it refuses with which words, and what its commands say.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  makeFolder,
  runtimes,
  runtimesOfRules,
  spawnGate,
  startGate,
} from "../fixture/gate-process.ts";

const route = { prefix: "/a", target: "http://127.0.0.1:1" };

/** Configurations that stop the start, and all that is said about them (FOLDER stands for the test's folder). */
const refused: [why: string, config: string, says: string][] = [
  [
    "an unknown key",
    '{\n  "routs": []\n}',
    'FOLDER/gate.json:2:3: routs: unknown key; did you mean "routes"?',
  ],
  [
    "a certificate that is not there",
    '{"tls_cert": "/no/cert.pem", "tls_key": "/no/key.pem"}',
    "configuration: tls_cert: /no/cert.pem cannot be read: no such file",
  ],
  [
    "a key set without issuer",
    '{"jwks_url": "http://id/jwks", "jwt_audience": "a"}',
    "FOLDER/gate.json:1:14: jwt_issuer: is required with jwks_url: tokens for other services must be rejected",
  ],
];

for (const runtime of runtimesOfRules) {
  test(`${runtime.name}: an invalid configuration stops the start with one message and exit code 2`, async (context) => {
    await Promise.all(
      refused.map(async ([why, config, says]) => {
        const folder = makeFolder(context);
        const { code, stderr } = await spawnGate(context, { runtime, folder, config }).ended;
        assert.equal(stderr.replaceAll(folder, "FOLDER"), `platform-gate: ${says}\n`, why);
        assert.equal(code, 2, why);
      }),
    );
  });

  test(`${runtime.name}: a named configuration file must exist, the default one need not`, async (context) => {
    const folder = makeFolder(context);
    const named = await spawnGate(context, { runtime, folder }).ended;
    assert.deepEqual(
      [named.code, named.stderr],
      [2, `platform-gate: ${folder}/gate.json: cannot be read: no such file\n`],
    );
    const gate = await startGate(context, { runtime, args: ["--addr", "127.0.0.1:0"] });
    assert.ok(gate.lines().some((line) => /configuration file not found/.test(line.msg)));
    assert.equal((await fetch(`${gate.url}/readyz`)).status, 200);
    assert.deepEqual(await (await fetch(`${gate.url}/api/v1/routes`)).json(), []);
    const none = await fetch(`${gate.url}/anything`);
    assert.equal(none.status, 502);
    assert.equal(((await none.json()) as { code: string }).code, "route_not_found");
  });

  test(`${runtime.name}: a second gateway on the port does not start, and the first continues`, async (context) => {
    const first = await startGate(context, { runtime, config: { workers: 1, routes: [route] } });
    const second = spawnGate(context, {
      runtime,
      config: { addr: `127.0.0.1:${first.port}`, workers: 1 },
    });
    const { code, stdout } = await second.ended;
    assert.equal(code, 1);
    assert.match(stdout, new RegExp(`127\\.0\\.0\\.1 port ${first.port} is in use.*--addr`));
    assert.equal((await fetch(`${first.url}/healthz`)).status, 200);
  });
}

const [node] = runtimes;

test("a port in use stops the start with an error that names it", async (context) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const gate = spawnGate(context, {
    runtime: node ?? assert.fail(),
    config: { addr: `127.0.0.1:${port}`, workers: 1 },
  });
  const { code, stdout } = await gate.ended;
  assert.equal(code, 1);
  assert.match(stdout, new RegExp(`port ${port} is in use`));
});

test("the commands answer without starting the gateway", async (context) => {
  const runtime = node ?? assert.fail();
  const run = async (args: string[], folder = makeFolder(context)) =>
    spawnGate(context, { runtime, folder, args }).ended;
  const folder = makeFolder(context);
  writeFileSync(join(folder, "gate.json"), JSON.stringify({ routes: [route] }));

  const [help, version, valid, empty, clear, registry] = await Promise.all([
    run(["--help"]),
    run(["--version"]),
    run(["validate"], folder),
    run(["overlay", "show"], folder),
    run(["overlay", "clear"], folder),
    spawnGate(context, { runtime, args: ["install", "a"] }).ended,
  ]);
  assert.match(help.stdout, /validate[\s\S]*overlay show[\s\S]*--addr/);
  assert.deepEqual([version.code, version.stdout], [0, "platform-gate 1.0.0\n"]);
  assert.deepEqual([valid.code, valid.stdout], [0, `${folder}/gate.json: ok, 1 route\n`]);
  assert.equal(empty.code, 0);
  assert.deepEqual(JSON.parse(empty.stdout), {
    path: `${folder}/gate.json.overlay.json`,
    set: [],
    removed: [],
  });
  assert.equal(clear.code, 0);
  assert.equal(registry.code, 2);
  assert.match(registry.stderr, /no registry: set PLATFORM_REGISTRY/);
});

test("a damaged overlay stops the start with a remedy that works", async (context) => {
  const runtime = node ?? assert.fail();
  const folder = makeFolder(context);
  const overlay = join(folder, "gate.json.overlay.json");
  writeFileSync(overlay, "{}");
  const stopped = await spawnGate(context, { runtime, folder, config: {} }).ended;
  assert.equal(stopped.code, 1);
  assert.match(stopped.stderr, /gate\.json\.overlay\.json is not usable: .*overlay clear/);
  await spawnGate(context, { runtime, folder, args: ["overlay", "clear"] }).ended;
  assert.ok(!existsSync(overlay));
  await startGate(context, { runtime, folder, config: { workers: 1 } });
});
