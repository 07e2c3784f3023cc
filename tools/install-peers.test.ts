// The options of the installer; installation itself depends on the machine.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("install-peers", import.meta.url));

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync("bash", [SCRIPT, ...args], { encoding: "utf8" });
}

test("install-peers prints help and rejects unknown arguments", () => {
  assert.match(run("--help").stdout, /--list/);
  const unknown = run("--check", "no-such-purpose");
  assert.equal(unknown.status, 1);
  assert.match(unknown.stderr, /unknown purpose|not Debian/);
  assert.equal(run("--no-such-option").status, 2);
});

test("install-peers lists packages by purpose without installing any", (t) => {
  if (spawnSync("dpkg-query", ["--version"]).status !== 0) return t.skip("not Debian");
  assert.match(run("--list", "load").stdout, /^load +wrk +(installed|missing)$/m);
});

test("install-peers requires packages that only benchmarks use if they are asked for", (t) => {
  if (spawnSync("dpkg-query", ["--version"]).status !== 0) return t.skip("not Debian");
  assert.match(run("--list").stdout, /^bench +radosgw /m);
  assert.doesNotMatch(run("--check").stderr, /radosgw|wasi-libc/);
  const { status, stderr } = run("--check", "bench");
  assert.equal(/nats-server|radosgw|ceph-/.test(stderr), status === 1, stderr);
});
