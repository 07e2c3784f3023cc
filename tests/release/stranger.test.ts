// A release in an empty network: installed, started, a project created, shared and extended. The registry has only
// TypeScript, rolldown and zod, and is never asked for a name of ours. Long: it writes a whole release.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/** The parts of rolldown and TypeScript on this machine, as package-lock.json names them. */
const PACKAGES = [
  "node_modules/typescript",
  `node_modules/@typescript/typescript-linux-${process.arch}`,
  "node_modules/rolldown",
  `node_modules/@rolldown/binding-linux-${process.arch}-gnu`,
  "node_modules/@rolldown/pluginutils",
  "node_modules/@oxc-project/types",
  "node_modules/rolldown/node_modules/@oxc-project/types",
  "node_modules/zod",
];

function explainSkip(): string | undefined {
  if (process.env["PLATFORM_TEST_RELEASE"] !== "whole") return "only in the long form";
  const probe = spawnSync("unshare", ["--net", "ip", "link", "set", "lo", "up"]);
  return probe.status === 0 ? undefined : "needs network namespaces";
}

const skip = explainSkip() ?? false;

test(
  "a stranger installs, starts, develops and shares without a name of ours leaving",
  { skip },
  (t) => {
    const root = mkdtempSync(join(tmpdir(), "stranger-"));
    t.after(() => rmSync(root, { recursive: true }));
    const [release, tarballs, work] = ["release", "tarballs", "work"].map((name) =>
      join(root, name),
    );
    for (const folder of [tarballs!, work!]) mkdirSync(folder);
    const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
      packages: Record<string, { version: string } | undefined>;
    };
    for (const path of PACKAGES) {
      const entry = lock.packages[path];
      if (entry === undefined) continue;
      const wanted = `${path.slice(path.lastIndexOf("node_modules/") + 13)}@${entry.version}`;
      execFileSync("npm", ["pack", wanted, "--pack-destination", tarballs!], { stdio: "pipe" });
    }
    const target = `linux-${process.arch}`;
    const args = ["tools/release/release.ts", "--out", release!, "--target", target];
    t.diagnostic(execFileSync(process.execPath, args, { encoding: "utf8" }));
    const steps = `ip link set lo up && exec "$0" "$@"`;
    const run = spawnSync(
      "unshare",
      [
        "--net",
        "sh",
        "-c",
        steps,
        process.execPath,
        "tests/release/stranger-steps.ts",
        release!,
        tarballs!,
        work!,
      ],
      { encoding: "utf8" },
    );
    assert.equal(run.status, 0, run.stdout + run.stderr);
    t.diagnostic(run.stdout);
  },
);
