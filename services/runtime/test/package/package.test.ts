// The package of projects: what it contains, what strangers' compilers say to it, and what npm does with it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { FACES } from "../../src/build/library.ts";
import { runPlatform } from "../fixture/run-process.ts";

const CHECKOUT = resolve(import.meta.dirname, "../../../..");
const root = mkdtempSync(join(tmpdir(), "package-"));
const project = join(root, "notes");
after(() => rmSync(root, { recursive: true }));

interface Lock {
  packages: Record<string, Record<string, unknown>>;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

const { version } = readJson(join(CHECKOUT, "package.json")) as { version: string };
const TARBALL = `platform-${version}.tgz`;
const VENDORED = `vendor/${TARBALL}`;
const PRINTED = `platform ${version}`;

/** npm without a network: a request fails, whatever it asks for. */
function runNpm(folder: string, ...args: string[]) {
  const env = {
    PATH: process.env["PATH"],
    HOME: root,
    npm_config_cache: join(root, "cache"),
    npm_config_registry: "http://127.0.0.1:9/",
    npm_config_fetch_retries: "0",
    npm_config_audit: "false",
    npm_config_update_notifier: "false",
  };
  const run = spawnSync("npm", args, { cwd: folder, env, encoding: "utf8" });
  return { status: run.status, text: run.stdout + run.stderr };
}

function runProject(folder: string, ...args: string[]) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const run = spawnSync(join(folder, "platform"), args, { cwd: folder, env, encoding: "utf8" });
  return { status: run.status, text: run.stdout + run.stderr };
}

/** The project as its repository has it, with what npm installs of the lock file. */
function cloneProject(name: string): string {
  const clone = join(root, name);
  cpSync(project, clone, { recursive: true, filter: (path) => !path.includes("node_modules") });
  const { status, text } = runNpm(clone, "ci", "--omit=optional");
  assert.equal(status, 0, text);
  return clone;
}

before(() => {
  const made = runPlatform(root, "init", "notes");
  assert.equal(made.status, 0, made.text);
});

test("the package has all modules that the platform imports of it", () => {
  const { exports } = readJson(join(CHECKOUT, "packages/service/package.json")) as {
    exports: object;
  };
  const faces = FACES.map((face) => (face === "index" ? "." : `./${face}`));
  assert.deepEqual(faces, Object.keys(exports));
});

test("a project depends on a file, whose hash its lock file has", () => {
  const manifest = readJson(join(project, "package.json")) as { dependencies: object };
  assert.deepEqual(manifest.dependencies, { "@platform/service": `file:${VENDORED}` });
  const entry = (readJson(join(project, "package-lock.json")) as Lock).packages[
    "node_modules/@platform/service"
  ]!;
  assert.equal(entry["resolved"], `file:${VENDORED}`);
  assert.match(String(entry["integrity"]), /^sha512-/);
});

test("no lock file and no packed manifest names a package of ours by version", () => {
  const ours = new Set([
    "platform",
    ...globSync("{packages,services,apps}/*/package.json", { cwd: CHECKOUT }).map(
      (path) => (readJson(join(CHECKOUT, path)) as { name: string }).name,
    ),
  ]);
  const locks = [join(CHECKOUT, "package-lock.json"), join(project, "package-lock.json")];
  for (const path of locks) {
    for (const [place, entry] of Object.entries((readJson(path) as Lock).packages)) {
      const name = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
      if (!place.includes("node_modules/") || !ours.has(name)) continue;
      const isHere = entry["link"] === true || String(entry["resolved"]).startsWith("file:");
      assert.ok(isHere, `${path}: ${place} would be fetched from a registry`);
    }
  }
  const folder = join(root, "unpacked");
  mkdirSync(folder);
  spawnSync("tar", ["-xzf", join(project, VENDORED), "-C", folder]);
  const manifests = globSync("**/package.json", { cwd: folder });
  assert.ok(manifests.length > 3);
  for (const path of manifests) {
    const fields = ["dependencies", "optionalDependencies", "peerDependencies"];
    const manifest = readJson(join(folder, path)) as Record<string, object | undefined>;
    const named = fields.flatMap((field) => Object.keys(manifest[field] ?? {}));
    assert.deepEqual(
      named.filter((name) => ours.has(name)),
      [],
      path,
    );
  }
});

test("a strict project of plain TypeScript has no errors of the package's declarations", () => {
  const folder = join(root, "strict");
  mkdirSync(join(folder, "node_modules/@platform"), { recursive: true });
  spawnSync("tar", ["-xzf", join(project, VENDORED), "-C", join(folder, "node_modules/@platform")]);
  cpSync(
    join(folder, "node_modules/@platform/package"),
    join(folder, "node_modules/@platform/service"),
    { recursive: true },
  );
  writeFileSync(
    join(folder, "main.ts"),
    `import { database, every, HttpError, reply, route, server, type ServiceRequest } from "@platform/service";
import { startTestService } from "@platform/service/testing";
interface Note { id: number; text: string }
const notes = database("notes", { migrations: "./migrations" }, import.meta.url);
route("GET", "/notes/:id", async ({ params }) => {
  const id: string = params.id;
  const note = await notes.one<Note>\`select * from notes where id = \${id}\`;
  if (note === undefined) throw new HttpError(404, "No such note");
  return reply(note.text.toUpperCase());
});
every("5m", ({ signal }) => void signal.aborted);
export const address: (request: ServiceRequest) => string = (request) => request.path;
export const app = await startTestService();
await server({ port: 3000 }).start();
// @ts-expect-error A port is a number.
server({ port: "3000" });
`,
  );
  // That of `tsc --init`, without its comments, and with checks of declarations.
  const compilerOptions = {
    module: "nodenext",
    target: "esnext",
    types: [],
    sourceMap: true,
    declaration: true,
    declarationMap: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    strict: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    noUncheckedSideEffectImports: true,
    moduleDetection: "force",
    skipLibCheck: false,
    outDir: "out",
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["main.ts"] }),
  );
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const tsc = join(CHECKOUT, "node_modules/typescript/bin/tsc");
  const run = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stdout);
});

test("a colleague's clone runs after npm ci, and keeps the package when another one is added", () => {
  const clone = cloneProject("clone");
  assert.ok(runProject(clone, "--version").text.startsWith(PRINTED));
  const tested = runProject(clone, "test");
  assert.equal(tested.status, 0, tested.text);
  assert.match(runProject(clone, "check").text, /main\.service\.ts|no errors/);
  const other = join(root, "other");
  mkdirSync(other);
  writeFileSync(join(other, "package.json"), '{ "name": "other", "version": "1.0.0" }');
  assert.equal(runNpm(other, "pack", "--pack-destination", clone).status, 0);
  const added = runNpm(clone, "install", "--omit=optional", "./other-1.0.0.tgz");
  assert.equal(added.status, 0, added.text);
  assert.ok(runProject(clone, "--version").text.startsWith(PRINTED));
  assert.equal(runNpm(clone, "ci", "--omit=optional").status, 0);
  assert.ok(existsSync(join(clone, "node_modules/other/package.json")));
  assert.ok(runProject(clone, "--version").text.startsWith(PRINTED));
});

test("without TypeScript, check and the language server say so, and statements are still checked", () => {
  const clone = join(root, "clone");
  const checked = runProject(clone, "check");
  assert.equal(checked.status, 0, checked.text);
  assert.match(checked.text, /types were not checked; install typescript/);
  const main = join(clone, "main.service.ts");
  const text = readFileSync(main, "utf8");
  writeFileSync(main, text.replace("select * from notes order", "select * from nowhere order"));
  assert.match(runProject(clone, "check").text, /no such table: nowhere/);
  writeFileSync(main, text);
  const rootUri = pathToFileURL(clone).href;
  const params = { rootUri, capabilities: {} };
  const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const input = `Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`;
  const served = spawnSync(join(clone, "platform"), ["lsp"], {
    cwd: clone,
    input,
    encoding: "utf8",
  });
  assert.match(served.stdout, /types are not checked; install typescript 7 in the project/);
  assert.match(served.stdout, /"serverInfo":\{"name":"platform"/);
});

test("a package that npm has unpacked gives new projects the same file", () => {
  const clone = join(root, "clone");
  const { NODE_TEST_CONTEXT: _, ...others } = process.env;
  const env = { ...others, HOME: root, XDG_CACHE_HOME: "" };
  const args = ["init", join(root, "second")];
  const run = spawnSync(join(clone, "platform"), args, { cwd: clone, env, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  const read = (folder: string) => readFileSync(join(root, folder, VENDORED));
  assert.ok(read("second").equals(read("clone")));
});

test("npm refuses a package whose content is not that of the lock file", () => {
  const folder = join(root, "damaged");
  cpSync(project, folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
  const bytes = readFileSync(join(folder, VENDORED));
  writeFileSync(join(folder, VENDORED), Buffer.concat([bytes, Buffer.from("x")]));
  // The cache of the other tests has the right content under this hash.
  const cache = ["--cache", join(root, "empty-cache")];
  const { status, text } = runNpm(folder, "ci", "--omit=optional", ...cache);
  assert.notEqual(status, 0);
  assert.match(text, /EINTEGRITY/);
});

test("project update replaces an older package, and keeps the other dependencies", () => {
  const folder = join(root, "older");
  cpSync(project, folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
  for (const name of ["package.json", "package-lock.json"]) {
    const text = readFileSync(join(folder, name), "utf8").replaceAll(
      VENDORED,
      "vendor/platform-0.9.0.tgz",
    );
    writeFileSync(join(folder, name), text);
  }
  cpSync(join(folder, VENDORED), join(folder, "vendor/platform-0.9.0.tgz"));
  rmSync(join(folder, VENDORED));
  const lockPath = join(folder, "package-lock.json");
  const lock = readJson(lockPath) as Lock;
  lock.packages["node_modules/zod"] = { version: "4.0.0", integrity: "sha512-AAAA" };
  writeFileSync(lockPath, JSON.stringify(lock));
  const updated = runPlatform(folder, "project", "update");
  assert.equal(updated.status, 0, updated.text);
  assert.ok(updated.text.includes(`from platform-0.9.0.tgz to ${TARBALL}`), updated.text);
  assert.deepEqual(readdirSync(join(folder, "vendor")), [TARBALL]);
  const packages = (readJson(lockPath) as Lock).packages;
  assert.equal(packages["node_modules/zod"]?.["version"], "4.0.0");
  assert.equal(packages["node_modules/@platform/service"]?.["resolved"], `file:${VENDORED}`);
  const broken = join(root, "broken");
  cpSync(folder, broken, { recursive: true, filter: (path) => !path.includes("node_modules") });
  writeFileSync(join(broken, "package-lock.json"), "{");
  const before = readFileSync(join(broken, "package.json"), "utf8");
  const refused = runPlatform(broken, "project", "update");
  assert.equal(refused.status, 1);
  assert.match(refused.text, /package-lock\.json cannot be read/);
  assert.equal(readFileSync(join(broken, "package.json"), "utf8"), before);
});
