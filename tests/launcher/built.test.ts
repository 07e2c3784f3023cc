// The choice between sources and the built form of a program, and a checkout that builds at its first start.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { findBuilt } from "../../bin/built.js";

const ROOT = join(import.meta.dirname, "../..");
const MAIN = "@platform/gate/main";
/** The build has a low priority. */
const WAIT_MS = 400_000;
const folders: string[] = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "built-"));
  folders.push(folder);
  return folder;
}

/** An installation with one source, and its build. */
function makeInstallation(t: TestContext) {
  const form = process.env["PLATFORM_FORM"];
  process.env["PLATFORM_FORM"] = "";
  t.after(() => void (process.env["PLATFORM_FORM"] = form ?? ""));
  const root = makeFolder();
  const source = join(root, "services/gate/src/main.ts");
  mkdirSync(join(root, "services/gate/src"), { recursive: true });
  writeFileSync(source, "export const main = 1;\n");
  const folder = join(root, "dist/services/abc");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "gate.js"), "");
  const { size, mtimeMs } = statSync(source);
  const list = join(folder, "gate.sources.json");
  const entry = [
    "services/gate/src/main.ts",
    size,
    mtimeMs,
    createHash("sha256").update(readFileSync(source)).digest("base64url"),
  ];
  writeFileSync(list, JSON.stringify([entry]));
  const current = join(root, "dist/services/current");
  writeFileSync(current, "abc\n");
  return { root, source, list, current, url: pathToFileURL(join(folder, "gate.js")).href };
}

test("the built form is used while the content of its sources is that of the build", (t) => {
  const { root, source, list, url } = makeInstallation(t);
  assert.equal(findBuilt(MAIN, root), url);
  // A copy of the installation, and a change that was taken back, have other times; the next start compares times again.
  utimesSync(source, 1_000_000_000, 1_000_000_000);
  assert.equal(findBuilt(MAIN, root), url);
  assert.equal((JSON.parse(readFileSync(list, "utf8")) as unknown[][])[0]![2], 1e12);
  writeFileSync(source, "export const main = 2;\n");
  assert.equal(findBuilt(MAIN, root), undefined);
  writeFileSync(source, "export const main = 1;\n");
  assert.equal(findBuilt(MAIN, root), url);
  rmSync(source);
  assert.equal(findBuilt(MAIN, root), undefined);
});

test("PLATFORM_FORM chooses the form, and its other values are errors", (t) => {
  const { root, source, url } = makeInstallation(t);
  process.env["PLATFORM_FORM"] = "source";
  assert.equal(findBuilt(MAIN, root), undefined);
  process.env["PLATFORM_FORM"] = "built";
  writeFileSync(source, "export const main = 2;\n");
  assert.equal(findBuilt(MAIN, root), url);
  const bin = join(ROOT, "bin/platform-gate.js");
  const env = { ...process.env, PLATFORM_FORM: "fast" };
  const { status, stderr } = spawnSync(process.execPath, [bin, "--version"], { env });
  assert.equal(status, 1);
  assert.equal(String(stderr), 'platform: PLATFORM_FORM is "fast"; expected "source" or "built"\n');
});

test("a build that is not complete is not used", (t) => {
  const { root, list, current } = makeInstallation(t);
  const text = readFileSync(list, "utf8");
  writeFileSync(list, text.slice(0, -5));
  assert.equal(findBuilt(MAIN, root), undefined);
  writeFileSync(list, text);
  writeFileSync(current, "abd\n");
  assert.equal(findBuilt(MAIN, root), undefined);
  rmSync(current);
  assert.equal(findBuilt(MAIN, root), undefined);
});

/** A checkout whose packages are those of this one, but whose own files can be changed. */
function copyCheckout(): string {
  const copy = makeFolder();
  for (const part of ["bin", "packages", "services", "examples"]) {
    cpSync(join(ROOT, part), join(copy, part), {
      recursive: true,
      filter: (path) => !path.endsWith("/test") && !path.endsWith("/node_modules"),
    });
  }
  for (const file of ["package.json", "package-lock.json"])
    cpSync(join(ROOT, file), join(copy, file));
  mkdirSync(join(copy, "node_modules"));
  const installed = join(ROOT, "node_modules");
  for (const name of readdirSync(installed)) {
    const target = join(copy, "node_modules", name);
    if (name === "@platform") {
      // Its links lead to the packages beside them.
      cpSync(join(installed, name), target, { recursive: true, verbatimSymlinks: true });
    } else if (!name.startsWith(".")) symlinkSync(join(installed, name), target);
  }
  return copy;
}

/** Starts the sample; resolves to its supervisor when that is ready. */
async function start(root: string) {
  const args = ["up", "--only", "sample", "--json", "--data", join(root, "data")];
  const addresses = ["--hello-addr", "127.0.0.1:0", "--runtime-addr", "127.0.0.1:0"];
  const child = spawn(process.execPath, [join(root, "bin/platform.js"), ...args, ...addresses], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PLATFORM_FORM: "", NODE_COMPILE_CACHE: undefined },
  });
  let output = "";
  for await (const data of child.stdout) {
    output += String(data);
    if (output.includes('{"type":"started"')) break;
  }
  const stop = async (): Promise<void> => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await exited;
  };
  return { stop };
}

/** The stack of a call in the program's code, where it writes its help, and the modules that were loaded. */
function findStack(root: string, form = ""): { stack: string; isBuilt: boolean } {
  const preload = join(root, "stack.mjs");
  writeFileSync(
    preload,
    `import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
process.stdout.write = () => {
  console.error(JSON.stringify({ stack: new Error().stack, urls }));
  process.exit();
};
`,
  );
  const args = ["--import", preload, join(root, "bin/platform-gate.js"), "--help"];
  const env = { ...process.env, PLATFORM_FORM: form, NODE_COMPILE_CACHE: undefined };
  const { stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
  const { stack, urls } = JSON.parse(stderr) as { stack: string; urls: string[] };
  return { stack, isBuilt: urls.some((url) => /\/dist\/services\/\w+\/gate\.js$/.test(url)) };
}

test("a checkout builds at its first start, and uses the build until a source changes; its stacks name the sources", async () => {
  const root = copyCheckout();
  const first = await start(root);
  const current = join(root, "dist/services/current");
  const endsMs = performance.now() + WAIT_MS;
  while (!existsSync(current) && performance.now() < endsMs) await sleep(100);
  await first.stop();
  const folder = join(root, "dist/services", readFileSync(current, "utf8").trim());
  const programs = readdirSync(folder).filter((name) => /^[a-z]+\.js$/.test(name));
  const names = ["auth", "gate", "notify", "pulse", "runtime", "supervised", "tunnel", "vault"];
  assert.deepEqual(
    programs,
    names.map((name) => `${name}.js`),
  );
  // One character beyond Latin-1 doubles the memory that the text of its module takes.
  const modules = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".js"),
  );
  const wide = modules.filter((path) =>
    /[^\0-\xff]/.test(readFileSync(join(folder, path), "utf8")),
  );
  assert.deepEqual(wide, []);
  // The process of projects, whose package is beside it: a change of either is one of the supervisor's sources.
  assert.ok(existsSync(join(folder, "project/runtime-worker.js")));
  const sources = readFileSync(join(folder, "runtime.sources.json"), "utf8");
  for (const path of ["services/runtime/src/watch/worker.ts", "packages/service/src/index.ts"]) {
    assert.ok(sources.includes(`"${path}"`), path);
  }
  assert.deepEqual(readdirSync(join(root, "dist/services")).length, 2);
  utimesSync(join(root, "packages/kernel/src/log/index.ts"), 1_000_000_000, 1_000_000_000);
  const { stack, isBuilt } = findStack(root);
  assert.equal(isBuilt, true);
  assert.match(stack, /packages\/kernel\/src\/lifecycle\/program\.ts:\d+:\d+/);
  assert.match(stack, /services\/gate\/src\/main\.ts:\d+:\d+/);
  assert.equal(findStack(root, "source").isBuilt, false);
  appendFileSync(join(root, "packages/kernel/src/time/index.ts"), "\n");
  assert.equal(findStack(root).isBuilt, false);
});
