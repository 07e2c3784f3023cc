// The steps of somebody who has a release and a registry with three packages, and nothing else: run in a network namespace.
// Arguments: the folders of the release, of the registry's tarballs, and of the work.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startRegistry } from "./registry.ts";

const [release = "", tarballs = "", work = ""] = process.argv.slice(2);
const OURS = /^@platform\/|^platform$/;
const prefix = join(work, "prefix");
const installed = join(prefix, "bin/platform");
const shop = join(work, "shop");
const clone = join(work, "clone");

const registry = await startRegistry(tarballs);
const env = {
  PATH: process.env["PATH"],
  HOME: work,
  npm_config_registry: registry.url,
  npm_config_cache: join(work, "cache"),
  npm_config_fetch_retries: "0",
  npm_config_update_notifier: "false",
};
const startedMs = performance.now();

function report(step: string): void {
  console.log(`${Math.round(performance.now() - startedMs)} ms: ${step}`);
}

/** Runs a program to its end without blocking the registry; resolves to its output. */
function run(folder: string, status: number, program: string, ...args: string[]): Promise<string> {
  const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      const command = [program, ...args].join(" ");
      if (code === status) resolve(text);
      else reject(new Error(`${command}: exit code ${code}, not ${status}\n${text}`));
    });
  });
}

/** Starts everything, and stops it at the banner. */
async function start(): Promise<void> {
  const folder = join(work, "server");
  mkdirSync(folder);
  const child = spawn(installed, ["up"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    if (/^platform .* started in/.test(line)) break;
  }
  report("platform up, to its banner");
  child.kill("SIGTERM");
  child.stdout.resume();
  await exited;
}

async function develop(): Promise<void> {
  await run(work, 0, installed, "init", "shop");
  report("platform init");
  await run(shop, 0, "npm", "ci");
  report("npm ci");
  assert.match(await run(shop, 0, "./platform", "check"), /no errors/);
  assert.match(await run(shop, 0, "npm", "run", "check"), /no errors/);
  await run(shop, 0, "npm", "test");
  await run(shop, 0, "./platform", "build");
  assert.match(await run(work, 0, join(shop, "dist/shop"), "--version"), /0\.1\.0/);
  report("check, test, build");
}

async function share(): Promise<void> {
  spawnSync("git", ["init", "-q", shop]);
  spawnSync("git", ["-C", shop, "add", "."]);
  const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  spawnSync("git", ["-C", shop, ...author, "commit", "-qm", "first"]);
  await run(work, 0, "git", "clone", "-q", shop, clone);
  await run(clone, 0, "npm", "ci");
  const other = join(work, "other");
  mkdirSync(other);
  writeFileSync(join(other, "package.json"), '{ "name": "other", "version": "1.0.0" }');
  await run(other, 0, "npm", "pack", "--pack-destination", clone);
  await run(clone, 0, "npm", "install", "./other-1.0.0.tgz");
  await run(clone, 0, "npm", "install", "zod");
  assert.match(await run(clone, 0, "./platform", "check"), /no errors/);
  await run(clone, 0, "npm", "ci");
  await run(clone, 0, "npm", "test");
  report("a clone: npm ci, npm install, check, test");
}

async function breakModules(): Promise<void> {
  const link = join(clone, "node_modules/.bin/platform");
  unlinkSync(link);
  symlinkSync("../missing.js", link);
  assert.match(await run(work, 1, join(clone, "platform"), "check"), /run "npm ci" in this folder/);
  rmSync(join(clone, "node_modules"), { recursive: true });
  assert.match(await run(clone, 1, "./platform", "check"), /run "npm ci" in this folder/);
}

await run(work, 0, "sh", join(release, "install.sh"), "--prefix", prefix);
report("install.sh");
await start();
await develop();
await share();
await breakModules();
registry.close();
const leaked = registry.asked.filter((name) => OURS.test(name));
assert.deepEqual(leaked, [], "a registry was asked for a name of ours");
assert.ok(registry.asked.includes("zod"), "the registry was used");
console.log("all steps passed");
