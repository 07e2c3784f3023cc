// `platform up` from the command line.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  anyPort,
  find,
  findStarted,
  isAlive,
  makeFolder,
  run,
} from "../fixture/platform-process.ts";

const bun = fileURLToPath(
  new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);

for (const runtime of ["node", "bun"]) {
  const skip = runtime === "bun" && !existsSync(bun) ? "bun is not installed" : false;
  test(
    `${runtime}: starts all services, forwards to the sample, requires tokens, stops gracefully`,
    { skip },
    async () => {
      const data = makeFolder();
      const up = run(["up", "--json", "--data", data, ...anyPort], { PLATFORM_RUNTIME: runtime });
      const started = await up.waitFor(findStarted);
      const gate = find(started, "gate");

      const hello = await fetch(`${gate.url}/hello`);
      assert.equal(hello.status, 200);
      assert.match(
        await hello.text(),
        /^Hello from examples\/hello\.\nfrom (127\.0\.0\.1|::1), trace 00-/,
      );
      const routes = `${gate.url}/api/v1/routes`;
      assert.equal((await fetch(routes)).status, 401);
      const file = join(data, "credentials.env");
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const token = /^PLATFORM_GATE_AUTH_TOKEN=(.{43})$/m.exec(readFileSync(file, "utf8"))?.[1];
      const allowed = await fetch(routes, { headers: { authorization: `Bearer ${token}` } });
      assert.equal(allowed.status, 200);
      assert.ok(!up.output().out.includes(token!), "the log contains the token");

      const messages = `${gate.url}/pulse/api/v1`;
      assert.equal((await fetch(`${messages}/topics`)).status, 401);
      const pulseToken = /^PLATFORM_PULSE_TOKEN=(.{43})$/m.exec(readFileSync(file, "utf8"))?.[1];
      const authorization = `Bearer ${pulseToken}`;
      const path = `${messages}/subscribe/${encodeURIComponent("orders.#")}`;
      const stream = await fetch(path, { headers: { authorization } });
      assert.equal(stream.status, 200);
      const published = await fetch(`${messages}/publish`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify({ topic: "orders.eu", payload: "hello" }),
      });
      assert.equal(published.status, 200);
      const reader = stream.body!.getReader();
      const { value } = await reader.read();
      assert.match(Buffer.from(value as Uint8Array).toString(), /^id: [^]*"payload":"hello"/);
      // The gateway drains requests in flight, and a subscription never ends.
      await reader.cancel();

      const pids = started.services.map(({ pid }) => pid);
      up.child.kill("SIGTERM");
      assert.equal(await up.exit, 0, up.output().out);
      assert.deepEqual(pids.filter(isAlive), []);
    },
  );
}

// One platform for two tests: the second kills its supervisor.
let up: ReturnType<typeof run>;

test("a service that dies restarts on its port, and the others keep running", async () => {
  up = run(["up", "--json", "--data", makeFolder(), ...anyPort]);
  const started = await up.waitFor(findStarted);
  const hello = find(started, "hello");
  process.kill(hello.pid, "SIGKILL");
  await up.waitFor((text) => (text.includes("unexpectedly; restarting") ? true : undefined));
  let status = 0;
  // Refused connections may open the gateway's circuit, for ten seconds at first.
  for (let i = 0; i < 120 && status !== 200; i += 1) {
    await sleep(500);
    status = (await fetch(`${find(started, "gate").url}/hello`)).status;
  }
  assert.equal(status, 200);
  assert.ok(isAlive(find(started, "gate").pid));
});

test("all services exit after kill -9 of the supervisor", async () => {
  const { services } = await up.waitFor(findStarted);
  // The sample was restarted.
  const pids = services.filter(({ name }) => name !== "hello").map(({ pid }) => pid);
  assert.equal(pids.filter(isAlive).length, 6);
  up.child.kill("SIGKILL");
  for (let i = 0; i < 600 && pids.some(isAlive); i += 1) await sleep(50);
  assert.deepEqual(pids.filter(isAlive), []);
});

test("a signal during startup stops all services gracefully", async () => {
  const data = makeFolder();
  const up = run(["up", "--json", "--data", data, ...anyPort]);
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

test("an invalid gateway configuration stops the start with its error", async () => {
  const data = makeFolder();
  mkdirSync(join(data, "gate"));
  writeFileSync(join(data, "gate", "config.json"), '{"routs": []}');
  const second = run(["up", "--data", data, ...anyPort]);
  assert.equal(await second.exit, 1);
  const { out, err } = second.output();
  assert.match(out + err, /config\.json:1:2: routs: unknown key; did you mean "routes"\?/);
  assert.match(out + err, /gateway exited before it was ready \(exit code 2\)/);
});

const answers: [args: string[], code: number, text: RegExp][] = [
  [["--version"], 0, /^platform 1\.0\.0\n$/],
  [["--help"], 0, /Usage: (?:npx )?platform <command> \[flags\]/],
  [[], 2, /Usage: (?:npx )?platform <command> \[flags\]/],
  [["up", "--help"], 0, /--gateway-addr ADDR[^]*PLATFORM_GATE_ADDR/],
  [["up", "--help"], 0, /^Usage: (?:npx )?platform up \[flags\]$/m],
  [["up", "--storag-addr", "x"], 2, /unknown flag; did you mean --storage-addr\?/],
  [["up", "--vault-addr", "x"], 2, /^platform: --storage-addr: .*"x" is not allowed/],
  [
    ["up", "--only", "gat"],
    1,
    /^platform: --only: unknown service "gat"; did you mean "gate"\?\n$/,
  ],
  [["up", "--only", "mesaging"], 1, /unknown service "mesaging"; did you mean "messaging"\?\n$/],
  [
    ["up", "--help"],
    0,
    /--only LIST +Start only these services: .*identity, storage, messaging, tunnel,\s+gateway/,
  ],
  [["up", "--prot", "1"], 2, /^platform: --prot: unknown flag/],
  [["upp"], 2, /unknown command; did you mean "up"\?/],
  [["user", "ad", "ann"], 2, /^platform: user ad: unknown command; did you mean "user add"\?/],
  [["app"], 2, /^platform: app: expected one of: app add, app remove, app list\n/],
  [["stop"], 2, /unknown command; did you mean "down"\?/],
  [["help", "logs"], 0, /^platform logs: Show the log/],
  [["usr", "add", "ann"], 2, /unknown command; did you mean "user add"\?/],
  [
    ["app", "add"],
    2,
    /^platform: app add: needs <name>\nplatform: usage: (?:npx )?platform app add <name>/,
  ],
  [["status", "--jsn"], 2, /^platform: --jsn: unknown flag; did you mean --json\?/],
  [
    ["app", "--help"],
    0,
    /Commands\n {2}app add <name>[^]*\n {2}app remove <name>[^]*\n {2}app list .*\n\nFlags/,
  ],
  [["logs", "--help"], 0, /Examples\n {2}(?:npx )?platform logs identity --level warn\n/],
  [["app", "add", "--help"], 0, /--topic LIST[^]*any\s+number\s+of\s+levels/],
  [["run", "x.service.ts", "--watch"], 1, /^platform: x\.service\.ts does not exist; name a file/],
  [["deploy", "x.service.ts", "--target", "docker"], 1, /^platform: x\.service\.ts does not exist/],
];
for (const [args, code, text] of answers) {
  test(`platform ${args.join(" ")} exits with ${code}`, async () => {
    const program = run(args);
    assert.equal(await program.exit, code);
    const { out, err } = program.output();
    assert.match(code === 0 ? out : err, text);
  });
}
