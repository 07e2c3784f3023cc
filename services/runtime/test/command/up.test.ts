// `platform up` from the command line: a running platform on Node and on Bun, services and supervisors that die.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
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
  type Started,
} from "@platform/testing/platform-process";

const bun = fileURLToPath(
  new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);

/** A running platform. */
interface Platform {
  up: ReturnType<typeof run>;
  started: Started;
  data: string;
}

async function start(runtime: string): Promise<Platform> {
  const data = makeFolder();
  const up = run(["up", "--json", "--data", data, ...anyPort], { PLATFORM_RUNTIME: runtime });
  return { up, started: await up.waitFor(findStarted), data };
}

async function checkTraffic({ up, started, data }: Platform): Promise<void> {
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
}

// One platform for three tests: the last one kills its supervisor.
let onNode: Platform;

test("node: starts all services, forwards to the sample, requires tokens", async () => {
  onNode = await start("node");
  await checkTraffic(onNode);
});

test("a service that dies restarts on its port, and the others keep running", async () => {
  const { up, started } = onNode;
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
  const { up, started } = onNode;
  // The sample was restarted.
  const pids = started.services.filter(({ name }) => name !== "hello").map(({ pid }) => pid);
  assert.equal(pids.filter(isAlive).length, 6);
  up.child.kill("SIGKILL");
  for (let i = 0; i < 600 && pids.some(isAlive); i += 1) await sleep(50);
  assert.deepEqual(pids.filter(isAlive), []);
});

test(
  "bun: starts all services, forwards to the sample, requires tokens, stops gracefully",
  { skip: existsSync(bun) ? false : "bun is not installed" },
  async () => {
    const onBun = await start("bun");
    await checkTraffic(onBun);
    const pids = onBun.started.services.map(({ pid }) => pid);
    onBun.up.child.kill("SIGTERM");
    assert.equal(await onBun.up.exit, 0, onBun.up.output().out);
    assert.deepEqual(pids.filter(isAlive), []);
  },
);
