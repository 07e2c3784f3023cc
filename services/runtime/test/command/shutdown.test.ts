// Ways in which `platform up` ends other than by one signal.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
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
} from "@platform/testing/platform-process";

const bin = fileURLToPath(new URL("../../../../bin/platform.js", import.meta.url));

async function waitUntilGone(pids: readonly number[], timeoutMs: number): Promise<number[]> {
  for (let ms = 0; ms < timeoutMs && pids.some(isAlive); ms += 50) await sleep(50);
  return pids.filter(isAlive);
}

test("a closed standard output stops the platform gracefully", async () => {
  const up = run(["up", "--json", "--data", makeFolder(), ...anyPort]);
  const started = await up.waitFor(findStarted);
  const pids = started.services.map(({ pid }) => pid);
  up.child.stdout.destroy();
  // Its log line finds the pipe closed.
  await fetch(`${find(started, "pulse").url}/api/v1/stats`);
  assert.equal(await up.exit, 0);
  assert.deepEqual(pids.filter(isAlive), []);
});

test("a second ctrl-c exits immediately and leaves no service behind", async () => {
  const data = makeFolder();
  const up = run(["up", "--json", "--only", "messaging", "--data", data, ...anyPort]);
  const started = await up.waitFor(findStarted);
  const token = /^PLATFORM_PULSE_TOKEN=(.+)$/m.exec(
    readFileSync(join(data, "credentials.env"), "utf8"),
  )?.[1];
  // A request whose body never ends keeps the drain waiting.
  const request = fetch(`${find(started, "pulse").url}/api/v1/publish`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{"topic":')) }),
    duplex: "half",
  }).catch(() => undefined);
  await sleep(300);
  const pids = started.services.map(({ pid }) => pid);
  up.child.kill("SIGINT");
  await sleep(700);
  assert.deepEqual(pids.filter(isAlive), pids, "the first signal drains");
  up.child.kill("SIGINT");
  assert.equal(await up.exit, 130);
  // A fraction of the drain timeout: the system may take a moment to remove them.
  assert.deepEqual(await waitUntilGone(pids, 5000), []);
  await request;
});

test("SIGTERM to npm ends everything", { skip: process.platform === "win32" }, async (t) => {
  const folder = makeFolder();
  const args = ["up", "--json", "--data", "data", ...anyPort].join(" ");
  const start = `node ${bin} ${args}`;
  writeFileSync(join(folder, "package.json"), JSON.stringify({ scripts: { start } }));
  const npm = spawn("npm", ["start"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => npm.kill("SIGKILL"));
  let out = "";
  npm.stdout.on("data", (data) => void (out += String(data)));
  for (let i = 0; i < 1200 && findStarted(out) === undefined; i += 1) await sleep(50);
  const started = findStarted(out) ?? assert.fail(out);
  const { pid } = JSON.parse(readFileSync(join(folder, "data", "running.json"), "utf8")) as {
    pid: number;
  };
  const pids = [pid, ...started.services.map((service) => service.pid)];
  npm.kill("SIGTERM");
  assert.deepEqual(await waitUntilGone(pids, 15_000), []);
});
