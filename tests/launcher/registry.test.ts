// No name of this repository is asked of a package registry, where a stranger may own it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

interface LockedPackage {
  name?: string;
  version?: string;
  integrity?: string;
  link?: boolean;
  resolved?: string;
}
interface Manifest {
  name: string;
  version?: string;
  bin?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "registry-"));
const clone = join(folder, "clone");
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, LockedPackage>;
};
const workspaces = Object.values(lock.packages).flatMap(({ link, resolved }) =>
  link === true && resolved !== undefined ? [resolved] : [],
);
const readManifest = (path: string): Manifest =>
  JSON.parse(readFileSync(join(root, path, "package.json"), "utf8")) as Manifest;
const main = readManifest(".");
const ours = new Set([
  ...[".", ...workspaces].map((path) => readManifest(path).name),
  ...Object.keys(main.bin ?? {}),
]);

/** Names that were asked of the registry. */
let asked: string[] = [];
const registry = createServer((request, response) => {
  const [path = ""] = (request.url ?? "").slice(1).split("?");
  const tarball = /^tarballs\/(.+)\/([^/]+)\.tgz$/.exec(path);
  if (tarball !== null) {
    const [, name = "", version = ""] = tarball;
    response.end(createTarball({ name: decodeURIComponent(name), version }));
    return;
  }
  const name = decodeURIComponent(path);
  asked.push(name);
  const versions = findVersions(name);
  if (ours.has(name) || versions.length === 0) {
    response.writeHead(404).end("{}");
    return;
  }
  const host = request.headers.host;
  const describe = (version: string) => [
    version,
    {
      name,
      version,
      dist: { tarball: `http://${host}/tarballs/${encodeURIComponent(name)}/${version}.tgz` },
    },
  ];
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ name, versions: Object.fromEntries(versions.map(describe)) }));
});

before(async () => {
  await new Promise<void>((done) => registry.listen(0, "127.0.0.1", done));
  for (const path of [".", ...workspaces]) copy(join(path, "package.json"));
  // The stub's tarballs have other contents.
  const packages = Object.entries(lock.packages).map(([path, locked]) => {
    const unsealed = { ...locked };
    delete unsealed.integrity;
    return [path, unsealed];
  });
  const text = JSON.stringify({ ...lock, packages: Object.fromEntries(packages) });
  writeFileSync(join(clone, "package-lock.json"), text);
  for (const [name, path] of Object.entries(main.bin ?? {})) {
    mkdirSync(join(clone, dirname(path)), { recursive: true });
    writeFileSync(
      join(clone, path),
      `#!/usr/bin/env node\nconsole.log("${name} of the clone");\n`,
      { mode: 0o755 },
    );
  }
});
after(() => {
  registry.closeAllConnections();
  registry.close();
  rmSync(folder, { recursive: true, force: true });
});

test("npm ci in a clone asks a registry for strangers' packages only", async () => {
  asked = [];
  // Tools of developers have no part in how names of workspaces are resolved, and are most of the packages.
  await run("npm", ["ci", "--omit=dev", "--omit=optional"], clone);
  assert.ok(asked.length > 20, "the registry was used");
  assert.deepEqual(
    asked.filter((name) => ours.has(name)),
    [],
  );
});

test("npx runs the programs of the clone, not those of a registry", async () => {
  asked = [];
  for (const name of ["platform", "platform-gate"])
    assert.equal((await run("npx", ["--yes", name], clone)).trim(), `${name} of the clone`);
  assert.deepEqual(asked, []);
});

test("manifests name exactly the versions of the workspaces, so that none is searched elsewhere", () => {
  const versions = new Map(
    workspaces.map((path) => [readManifest(path).name, readManifest(path).version]),
  );
  const foreign = [".", ...workspaces].flatMap((path) => {
    const { dependencies = {}, devDependencies = {} } = readManifest(path);
    return Object.entries({ ...dependencies, ...devDependencies })
      .filter(([name, range]) => ours.has(name) && versions.get(name) !== range)
      .map(([name, range]) => `${path}: ${name}@${range}`);
  });
  assert.deepEqual(foreign, []);
  const published = [".", ...workspaces].filter(
    (path) => (readManifest(path) as { private?: boolean }).private !== true,
  );
  assert.deepEqual(published, [], "a package that is not private could be published by mistake");
});

test("the registry would have noticed: a name without a workspace is asked for", async () => {
  asked = [];
  const stray = join(folder, "stray");
  mkdirSync(stray);
  writeFileSync(
    join(stray, "package.json"),
    JSON.stringify({ name: "stray", version: "1.0.0", dependencies: { "@platform/log": "1.0.0" } }),
  );
  await assert.rejects(run("npm", ["install"], stray), /404/);
  assert.deepEqual(asked, ["@platform/log"]);
});

function copy(path: string): void {
  mkdirSync(join(clone, dirname(path)), { recursive: true });
  cpSync(join(root, path), join(clone, path));
}

function findVersions(name: string): string[] {
  const found = Object.entries(lock.packages).flatMap(([path, locked]) => {
    const own =
      locked.name ?? path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    return own === name && path.includes("node_modules/") && locked.link !== true
      ? [locked.version ?? ""]
      : [];
  });
  return [...new Set(found)];
}

async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    npm_config_registry: url,
    npm_config_cache: join(folder, "cache"),
    npm_config_ignore_scripts: "true",
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    npm_config_fetch_retries: "0",
  };
  return (await promisify(execFile)(program, [...args], { cwd, env })).stdout;
}

// A tar archive (POSIX.1-1988) with nothing but a manifest.
function createTarball(manifest: object): Buffer {
  const content = Buffer.from(JSON.stringify(manifest));
  const header = Buffer.alloc(512);
  header.write("package/package.json", 0);
  header.write("0000644\0", 100);
  header.write("0000000\0", 108);
  header.write("0000000\0", 116);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("00000000000\0", 136);
  header.fill(" ", 148, 156);
  header.write("0", 156);
  header.write("ustar\u000000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const padding = Buffer.alloc((512 - (content.length % 512)) % 512);
  return gzipSync(Buffer.concat([header, content, padding, Buffer.alloc(1_024)]));
}
