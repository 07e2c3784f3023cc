// deploy/install.sh with small releases: versions side by side, one link, and nothing changed after a refusal.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const root = mkdtempSync(join(tmpdir(), "install-"));
after(() => rmSync(root, { recursive: true }));
const skip = process.platform === "linux" ? false : "releases are for Linux";
const target = process.arch === "arm64" ? "linux-arm64" : "linux-x64";

/** Writes a release whose command line prints its version. */
function makeRelease(version: string, mark = ""): string {
  const folder = mkdtempSync(join(root, "release-"));
  const name = `platform-${version}-${target}`;
  mkdirSync(join(folder, name));
  const program = join(folder, name, "platform");
  writeFileSync(program, `#!/bin/sh\necho "platform ${version}${mark}"\n`);
  chmodSync(program, 0o755);
  spawnSync("tar", ["-czf", `${name}.tar.gz`, name], { cwd: folder });
  rmSync(join(folder, name), { recursive: true });
  const hash = createHash("sha256").update(readFileSync(join(folder, `${name}.tar.gz`)));
  writeFileSync(join(folder, "SHA256SUMS"), `${hash.digest("hex")}  ${name}.tar.gz\n`);
  const text = readFileSync("deploy/install.sh", "utf8").replace("@VERSION@", version);
  writeFileSync(join(folder, "install.sh"), text);
  return folder;
}

function install(release: string, prefix: string, ...args: string[]) {
  const run = spawnSync("sh", [join(release, "install.sh"), "--prefix", prefix, ...args], {
    encoding: "utf8",
  });
  return { status: run.status, text: run.stdout + run.stderr };
}

function runInstalled(prefix: string): string {
  return spawnSync(join(prefix, "bin/platform"), { encoding: "utf8" }).stdout.trim();
}

test("an upgrade keeps the version before it, and the way back is one command", { skip }, () => {
  const prefix = join(root, "prefix");
  const [first, second] = [makeRelease("1.0.0"), makeRelease("1.1.0")];
  for (let round = 0; round < 2; round += 1) {
    assert.equal(install(first, prefix).status, 0);
    assert.equal(runInstalled(prefix), "platform 1.0.0");
  }
  const upgraded = install(second, prefix);
  assert.equal(upgraded.status, 0, upgraded.text);
  assert.match(upgraded.text, /platform 1\.0\.0 stays in .*--use 1\.0\.0/);
  assert.equal(runInstalled(prefix), "platform 1.1.0");
  assert.equal(install(second, prefix, "--use", "1.0.0").status, 0);
  assert.equal(runInstalled(prefix), "platform 1.0.0");
  assert.deepEqual(readdirSync(join(prefix, "lib/platform")).toSorted(), [
    "1.0.0",
    "1.1.0",
    "current",
  ]);
  assert.equal(readlinkSync(join(prefix, "lib/platform/current")), "1.0.0");
});

test("files of another hash are refused, and what is installed stays", { skip }, () => {
  const prefix = join(root, "damaged");
  const release = makeRelease("1.0.0");
  const archive = join(release, `platform-1.0.0-${target}.tar.gz`);
  const bytes = readFileSync(archive);
  writeFileSync(archive, Buffer.concat([bytes, Buffer.from("x")]));
  const refused = install(release, prefix);
  assert.equal(refused.status, 1);
  assert.match(
    refused.text,
    /has the hash [\da-f]{64}, not [\da-f]{64} of SHA256SUMS.*nothing was changed/,
  );
  assert.ok(!existsSync(prefix));
  writeFileSync(archive, bytes);
  assert.equal(install(release, prefix).status, 0);
  const other = makeRelease("1.0.0", " again");
  assert.equal(install(other, prefix).status, 0);
  assert.equal(runInstalled(prefix), "platform 1.0.0 again");
});

test("a version that does not start, or is not installed, changes nothing", { skip }, () => {
  const prefix = join(root, "failing");
  assert.equal(install(makeRelease("1.0.0"), prefix).status, 0);
  const release = makeRelease("2.0.0", '"; exit 1; echo "');
  const refused = install(release, prefix);
  assert.equal(refused.status, 1);
  assert.match(refused.text, /platform 2\.0\.0 does not start on this machine/);
  assert.equal(install(release, prefix, "--use", "3.0.0").status, 1);
  assert.equal(install(release, prefix, "--use", "../x").status, 1);
  assert.equal(install(release, prefix, "--frm", "x").status, 1);
  assert.equal(runInstalled(prefix), "platform 1.0.0");
  assert.deepEqual(readdirSync(join(prefix, "lib/platform")).toSorted(), ["1.0.0", "current"]);
});
