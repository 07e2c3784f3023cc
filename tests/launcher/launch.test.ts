// Tests the launcher of the bins on the pinned Node, an older Node and Bun.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = fileURLToPath(new URL("run.js", import.meta.url));
const launcher = fileURLToPath(new URL("../../bin/launch.js", import.meta.url));
const bun = fileURLToPath(
  new URL("../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);
const noBun = existsSync(bun) ? false : "bun is not installed";
const oldNode = findOldNode();
const noOldNode = oldNode === undefined ? "no Node older than 26 on this machine" : false;

function findOldNode(): string | undefined {
  return ["/usr/bin/node", "/usr/local/bin/node"].find((path) => {
    const run = spawnSync(path, ["--version"], { encoding: "utf8" });
    return run.status === 0 && Number.parseInt(run.stdout.slice(1), 10) < 26;
  });
}

function run(runtime: string, args: string[], env: Record<string, string> = {}, input = "") {
  return spawnSync(runtime, [script, ...args], {
    encoding: "utf8",
    input,
    timeout: 20_000,
    env: { ...process.env, ...env },
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function waitForEnd(pid: number): Promise<void> {
  for (let i = 0; i < 600 && isAlive(pid); i += 1) await sleep(50);
}

test("on the pinned runtime the program runs in the same process", () => {
  const result = run(process.execPath, ["exit", "5", "a b"]);
  assert.equal(result.status, 5, result.stderr);
  assert.deepEqual(JSON.parse(result.stdout).args, ["5", "a b"]);
});

test("compiled modules are kept for the next start, also by threads and child processes", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-compiled-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of [
    "bin/launch.js",
    "bin/built.js",
    "tests/launcher/run.js",
    "tests/launcher/program.ts",
  ]) {
    cpSync(join(root, part), join(folder, part));
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  mkdirSync(join(folder, "node_modules"));
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const copy = join(folder, "tests/launcher/run.js");
  const result = spawnSync(process.execPath, [copy, "env", "NODE_COMPILE_CACHE"], { env });
  const kept = join(folder, "node_modules/.cache/platform");
  assert.deepEqual(JSON.parse(String(result.stdout)).args, [kept]);
  const [version = ""] = readdirSync(kept);
  assert.ok(readdirSync(join(kept, version)).length > 0);
  // A folder that cannot be created is no reason not to start.
  rmSync(join(folder, "node_modules/.cache"), { recursive: true });
  writeFileSync(join(folder, "node_modules/.cache"), "");
  const without = spawnSync(process.execPath, [copy, "exit", "5"], { env, encoding: "utf8" });
  assert.equal(without.status, 5, without.stderr);
});

test(
  "PLATFORM_RUNTIME=bun runs the program on Bun, with arguments and exit code",
  { skip: noBun },
  () => {
    const result = run(process.execPath, ["exit", "6"], { PLATFORM_RUNTIME: "bun" });
    assert.equal(result.status, 6, result.stderr);
    assert.equal(JSON.parse(result.stdout).runtime, "bun");
  },
);

test(
  "Bun runs the program itself when it was started by name, and starts Node on request",
  { skip: noBun },
  () => {
    assert.equal(JSON.parse(run(bun, ["exit", "0"]).stdout).runtime, "bun");
    const left = run(bun, ["exit", "0"], { PLATFORM_RUNTIME: "node" });
    assert.equal(JSON.parse(left.stdout).runtime, "node", left.stderr);
  },
);

test("on Bun there is room for many WebAssembly memories, also for child processes", (t) => {
  if (noBun !== false) return t.skip(noBun);
  const name = "BUN_JSC_maxNumWasmFastMemories";
  const read = (env: Record<string, string>): string =>
    JSON.parse(run(process.execPath, ["env", name], env).stdout).args[0];
  assert.equal(read({ PLATFORM_RUNTIME: "bun" }), "1000");
  assert.equal(read({ PLATFORM_RUNTIME: "bun", [name]: "7" }), "7");
  assert.equal(read({ PLATFORM_RUNTIME: "node" }), "");
});

test("an unknown runtime is rejected with the supported ones", () => {
  const result = run(process.execPath, ["exit", "0"], { PLATFORM_RUNTIME: "deno" });
  assert.equal(result.status, 1);
  assert.equal(result.stderr, 'platform: PLATFORM_RUNTIME is "deno"; expected "node" or "bun"\n');
});

test("the error for a missing runtime names it and the remedy", () => {
  const folder = mkdtempSync(join(tmpdir(), "launch-"));
  try {
    cpSync(launcher, join(folder, "launch.mjs"));
    cpSync(join(root, "bin/built.js"), join(folder, "built.js"));
    writeFileSync(
      join(folder, "run.mjs"),
      'import { launch } from "./launch.mjs"; await launch(import.meta.url, "x");',
    );
    const result = spawnSync(process.execPath, [join(folder, "run.mjs")], {
      encoding: "utf8",
      env: { ...process.env, PLATFORM_RUNTIME: "bun" },
    });
    assert.equal(result.status, 1);
    assert.match(
      result.stderr,
      /^platform: the package @oven\/bun-\S+ is not installed; install it, or leave/,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an older Node forwards arguments, input, output and exit code", { skip: noOldNode }, () => {
  const result = run(oldNode!, ["exit", "9", "x"]);
  assert.equal(result.status, 9, result.stderr);
  const hello = JSON.parse(result.stdout);
  assert.deepEqual([hello.runtime, hello.args], ["node", ["9", "x"]]);
  assert.ok(hello.major >= 26);
  const echo = run(oldNode!, ["echo"], {}, "through the pipe");
  assert.ok(echo.stdout.endsWith("through the pipe"), echo.stdout);
});

test(
  "an older Node forwards signals, and exits with the signal of its child",
  { skip: noOldNode },
  async () => {
    const child = spawn(oldNode!, [script, "wait"], { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const [hello] = (await once(lines, "line")) as [string];
    assert.notEqual(JSON.parse(hello).pid, child.pid);
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [42, null]);
    assert.equal(run(oldNode!, ["abort"]).signal, "SIGKILL");
  },
);

for (const runtime of ["node", "bun"]) {
  const skip = noOldNode || (runtime === "bun" && noBun);
  test(`kill -9 of an older Node leaves no orphan on ${runtime}`, { skip }, async () => {
    const child = spawn(oldNode!, [script, "wait"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, PLATFORM_RUNTIME: runtime },
    });
    const [hello] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const { pid } = JSON.parse(hello) as { pid: number };
    assert.ok(pid !== child.pid && isAlive(pid));
    child.kill("SIGKILL");
    await waitForEnd(pid);
    assert.ok(!isAlive(pid));
  });
}
