// The start of `platform up`: signals, the banner, and what keeps it from starting.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anyPort, findStarted, makeFolder, run } from "@platform/testing/platform-process";

test("a signal during startup stops all services gracefully", async () => {
  const data = makeFolder();
  const only = ["--only", "gateway,messaging,storage"];
  const up = run(["up", "--json", ...only, "--data", data, ...anyPort]);
  for (let i = 0; i < 3_000 && !existsSync(join(data, "gate", "config.json")); i += 1)
    await sleep(20);
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0, up.output().out);
  assert.equal(findStarted(up.output().out), undefined);
});

test("the banner shows addresses, data and commands, without colours if the output is not a terminal", async () => {
  const data = makeFolder();
  const args = ["up", "--only", "gateway", "--data", data, ...anyPort];
  const first = run(args);
  await first.waitFor((text) => (text.includes("ctrl-c stops all services") ? true : undefined));
  const { out } = first.output();
  assert.match(
    out,
    /^platform 1\.0\.0 · data in \S+ · started in [0-9.]+ s\n\n {2}console {4}http:\/\/localhost:[0-9]+\n {2}gateway {4}http:\/\/localhost:[0-9]+ /,
  );
  assert.match(out, /\n {2}sample {5}http:\/\/localhost:[0-9]+ /);
  assert.match(out, /\nTry\n {2}curl localhost:[0-9]+\/hello +forwarded to the sample/);
  assert.ok(!out.includes("\u001b"));
  first.child.kill("SIGINT");
  assert.equal(await first.exit, 0);
  const again = run(args);
  await again.waitFor((text) => (text.includes("ctrl-c stops") ? true : undefined));
  again.child.kill("SIGINT");
  assert.equal(await again.exit, 0, "an existing data directory works");
});

test("all ports in use are reported with process and flag before any file is written", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => holder.once("listening", resolve));
  const { port } = holder.address() as AddressInfo;
  const data = join(makeFolder(), "data");
  const address = `127.0.0.1:${port}`;
  const rest = [
    "console",
    "runtime",
    "auth",
    "notify",
    "vault",
    "vault-admin",
    "pulse",
    "pulse-kafka",
    "pulse-mqtt",
    "pulse-stomp",
    "tunnel",
  ].flatMap((name) => [`--${name}-addr`, "127.0.0.1:0"]);
  const taken = ["--gate-addr", address, "--hello-addr", address, ...rest];
  const up = run(["up", "--data", data, ...taken]);
  assert.equal(await up.exit, 1);
  holder.close();
  const lines = up.output().err.trim().split("\n");
  assert.equal(lines.length, 2);
  for (const [index, flag] of ["--sample-addr", "--gateway-addr"].entries()) {
    assert.ok(
      lines[index]!.startsWith(`platform: 127.0.0.1 port ${port} is in use`),
      lines[index]!,
    );
    assert.ok(lines[index]!.endsWith(`choose another with ${flag}`), lines[index]!);
  }
  if (process.platform === "linux") assert.ok(lines[0]!.includes(`(process ${process.pid})`));
  assert.ok(!existsSync(data));
});

test("up --only starts although other services' ports and that of the API are in use", async () => {
  const holders = ["8071", "8080", "8086", "9000"].map((port) =>
    // Another platform on this machine holds them as well as this test.
    createServer()
      .on("error", () => undefined)
      .listen(Number(port), "127.0.0.1"),
  );
  const up = run([
    "up",
    "--json",
    "--only",
    "sample",
    "--data",
    makeFolder(),
    "--sample-addr",
    "127.0.0.1:0",
  ]);
  const { api_url: url } = await up.waitFor(findStarted);
  assert.notEqual(new URL(url).port, "8071");
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  up.child.kill("SIGTERM");
  assert.equal(await up.exit, 0);
  for (const holder of holders) holder.close();
});

test("an invalid gateway configuration stops the start with its error", async () => {
  const data = makeFolder();
  mkdirSync(join(data, "gate"));
  writeFileSync(join(data, "gate", "config.json"), '{"routs": []}');
  const second = run(["up", "--only", "gateway", "--data", data, ...anyPort]);
  assert.equal(await second.exit, 1);
  const { out, err } = second.output();
  assert.match(out + err, /config\.json:1:2: routs: unknown key; did you mean "routes"\?/);
  assert.match(out + err, /gateway exited before it was ready \(exit code 2\)/);
});
