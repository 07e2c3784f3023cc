// The programs: lines of the client, losses of either side, signals, several tunnels from a file, folders.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { Cleanup, send, startLocal } from "../fixture/stage.ts";
import { makeFolder, runProgram, startRelayProgram } from "../fixture/programs.ts";

const cleanup = new Cleanup();
after(() => cleanup.run());

async function fetchText(port: number, host: string, path = "/"): Promise<string> {
  const response = await send({ port, host, path }).catch(() => undefined);
  return response?.status === 200 ? response.body.toString() : "";
}

function relayUrl(port: number): string {
  return `ws://127.0.0.1:${port}/ws/connect`;
}

// Tests share it until the one that stops it.
const relay = await startRelayProgram(cleanup, makeFolder(cleanup));

test("a stopped client is answered for with 502 soon, and serves again after it continues", async () => {
  const local = await startLocal(cleanup, (_request, response) => response.end("awake"));
  const args = [`127.0.0.1:${local}`, "-s", "sleepy", "-r", relayUrl(relay.port), "-i", "0"];
  const client = runProgram(cleanup, args, { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) });
  const host = "sleepy.localhost";
  await waitFor(async () => (await fetchText(relay.port, host)) === "awake");
  client.child.kill("SIGSTOP");
  const startedMs = performance.now();
  const pending = await send({ port: relay.port, host });
  assert.equal(pending.status, 502);
  assert.equal(pending.headers["x-platform-tunnel-error"], "client_unresponsive");
  assert.ok(performance.now() - startedMs < 25_000, "a waiting request fails within seconds");
  const againMs = performance.now();
  assert.equal((await send({ port: relay.port, host })).status, 502);
  // A request that waited for the client would take five seconds and more.
  assert.ok(performance.now() - againMs < 4_000, "further ones fail immediately");
  client.child.kill("SIGCONT");
  const continuedMs = performance.now();
  await waitFor(async () => (await fetchText(relay.port, host)) === "awake");
  assert.ok(performance.now() - continuedMs < 30_000);
  client.child.kill("SIGKILL");
  await client.exit;
});

test("several tunnels from a YAML file share one connection, folders included", async () => {
  const one = await startLocal(cleanup, (_request, response) => response.end("one"));
  const folder = makeFolder(cleanup);
  mkdirSync(join(folder, "site", "sub"), { recursive: true });
  writeFileSync(join(folder, "site", "index.html"), "<h1>home</h1>");
  writeFileSync(join(folder, "site", "sub", "a.txt"), "0123456789");
  writeFileSync(join(folder, "site", ".secret"), "hidden");
  writeFileSync(
    join(folder, "tunnels.yaml"),
    `relay: ${relayUrl(relay.port)}
tunnels:
  - port: "${one}"
    subdomain: first
  - target: ./site
    subdomain: site
  - port: 9
    subdomain: www
`,
  );
  const client = runProgram(
    cleanup,
    ["client", "--config", "tunnels.yaml", "-i", "0"],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
    folder,
  );
  await waitFor(() => client.out().includes("refused"));
  assert.match(client.out(), /refused: The subdomain www is reserved\. +-> 9/);
  const { port } = relay;
  assert.equal(await fetchText(port, "first.localhost"), "one");
  assert.equal(await fetchText(port, "site.localhost"), "<h1>home</h1>");
  const range = await send({
    port,
    host: "site.localhost",
    path: "/sub/a.txt",
    headers: { range: "bytes=2-4" },
  });
  assert.deepEqual([range.status, range.body.toString()], [206, "234"]);
  for (const path of ["/.secret", "/../tunnels.yaml", "/%2e%2e/tunnels.yaml", "/sub/", "/none"]) {
    assert.equal((await send({ port, host: "site.localhost", path })).status, 404, path);
  }
  const metrics = await send({ port, host: "localhost", path: "/metrics" });
  assert.match(metrics.body.toString(), /^platform_tunnel_active_connections 1$/m);
});

test("--subdomain git is the current branch", async () => {
  const folder = makeFolder(cleanup);
  execFileSync("git", ["init", "-q", "-b", "feature/New_Login"], { cwd: folder });
  const client = runProgram(
    cleanup,
    ["3000", "-s", "git", "-r", relayUrl(relay.port), "-i", "0"],
    { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) },
    folder,
  );
  await waitFor(() => client.out().includes("http://feature-new-login.localhost"));
});

// Stops the relay: after the tests that share it.
test("the client prints its address and one line per request: time, method, path, status, duration", async () => {
  const local = await startLocal(cleanup, (request, response) => {
    response.statusCode = request.url === "/missing" ? 404 : 200;
    response.end("hello");
  });
  const state = makeFolder(cleanup);
  // The short form, with short flags.
  const client = runProgram(
    cleanup,
    [`127.0.0.1:${local}`, "-s", "lines", "-r", relayUrl(relay.port), "-i", "0"],
    { PLATFORM_TUNNEL_DATA_DIR: state },
  );
  await waitFor(() => client.out().includes("http://lines.localhost"));
  assert.match(
    client.out(),
    new RegExp(`http://lines\\.localhost:${relay.port} -> 127\\.0\\.0\\.1:${local}`),
  );
  assert.equal(await fetchText(relay.port, "lines.localhost", "/a?secret=1"), "hello");
  await send({ port: relay.port, host: "lines.localhost", path: "/missing" });
  await waitFor(() => client.out().includes("/missing"));
  assert.match(client.out(), /^\d{4}-\d\d-\d\dT\S+Z GET +\/a +200 [\d.]+m?s$/m);
  assert.match(client.out(), /GET +\/missing +404 [\d.]+m?s$/m);
  assert.ok(!client.out().includes("secret"));
  client.child.kill("SIGTERM");
  assert.equal(await client.exit, 0);
  assert.equal((await send({ port: relay.port, host: "lines.localhost" })).status, 502);
  relay.child.kill("SIGTERM");
  assert.equal(await relay.exit, 0);
});

test("after a relay was killed and restarted, the client is back under the same name", async () => {
  const folder = makeFolder(cleanup);
  const relay = await startRelayProgram(cleanup, folder);
  const local = await startLocal(cleanup, (_request, response) => response.end("still here"));
  const args = [
    "client",
    `127.0.0.1:${local}`,
    "--relay",
    relayUrl(relay.port),
    "--inspect-port",
    "0",
    "--json",
  ];
  const client = runProgram(cleanup, args, { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) });
  await waitFor(() => client.out().includes('"connected"'));
  const [first = ""] = client.out().split("\n");
  const { tunnels } = JSON.parse(first) as { tunnels: { url: string }[] };
  const host = new URL(tunnels[0]!.url).host;
  relay.child.kill("SIGKILL");
  await relay.exit;
  await waitFor(() => client.out().includes('"disconnected"'));
  await startRelayProgram(cleanup, folder, relay.port);
  await waitFor(async () => (await fetchText(relay.port, host)) === "still here");
  assert.equal(client.out().match(/"connected"/g)?.length, 2);
  client.child.kill("SIGKILL");
  await client.exit;
  await waitFor(async () => (await send({ port: relay.port, host })).status === 502);
});

const USAGE: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["no target", ["client"], /a target is required/],
  ["a target that is nothing", ["client", "nope"], /not a target; expected a port/],
  ["a port out of range", ["client", "99999"], /within 1 to 65535/],
  ["a target with a path", ["client", "http://localhost:3000/x"], /no path/],
  ["a missing file", ["client", "--config", "none.yaml"], /none\.yaml/],
  ["an unknown flag", ["client", "3000", "--subdomian", "x"], /unknown flag.*--subdomain/],
  ["a bad relay", ["client", "3000", "--relay", "http://x"], /relay/],
];

for (const [name, args, message] of USAGE) {
  test(`${name} is a usage error that says what is expected`, async () => {
    const program = runProgram(cleanup, args, { PLATFORM_TUNNEL_DATA_DIR: makeFolder(cleanup) });
    assert.equal(await program.exit, 2);
    assert.match(program.err(), message);
  });
}
