// deploy/Dockerfile without a daemon: its files are those of a release, and its steps run in a folder as root. Long: it writes
// a whole release.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const SCRIPT = join(import.meta.dirname, "container-steps.sh");
/** Folders of the base image, for which those of this machine stand. */
const BASE = ["usr", "bin", "sbin", "lib", "lib64"];

interface Instruction {
  name: string;
  /** Without line breaks. */
  text: string;
}

function readInstructions(): Instruction[] {
  return readFileSync("deploy/Dockerfile", "utf8")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ name: line.split(" ", 1)[0]!, text: line.slice(line.indexOf(" ") + 1) }));
}

function explainSkip(): string | undefined {
  if (process.env["PLATFORM_TEST_RELEASE"] !== "whole") return "only in the long form";
  const probe = spawnSync("unshare", ["--mount", "--net", "--pid", "--fork", "true"]);
  return probe.status === 0 ? undefined : "needs namespaces";
}

const skip = explainSkip() ?? false;
const texts = (list: readonly Instruction[], wanted: string): string[] =>
  list.filter(({ name }) => name === wanted).map(({ text }) => text);

test("the image is built of a release, and starts as user 10001", { skip }, (t) => {
  const work = mkdtempSync(join(tmpdir(), "container-"));
  const [release, root] = [join(work, "release"), join(work, "root")];
  t.after(() => {
    // The mounts are those of other namespaces: nothing of this machine may be in these folders.
    for (const name of BASE) {
      const path = join(root, name);
      assert.deepEqual(globSync(`${path}/*`, { exclude: () => !path.startsWith(work) }), []);
    }
    rmSync(work, { recursive: true });
  });
  const target = `linux-${process.arch}`;
  const args = ["tools/release/release.ts", "--out", release, "--target", target];
  t.diagnostic(execFileSync(process.execPath, args, { encoding: "utf8" }));
  const sums = readFileSync(join(release, "SHA256SUMS"), "utf8");
  for (const name of readdirSync(release)) {
    if (name !== "SHA256SUMS") assert.ok(sums.includes(`  ${name}\n`), `${name} has no hash`);
  }
  assert.match(sums, /^[\da-f]{64} {2}platform-service-\S+\.vsix$/m);

  const instructions = readInstructions();
  const sources = texts(instructions, "COPY")
    .filter((text) => !text.startsWith("--from="))
    .flatMap((text) => text.split(" ").slice(0, -1));
  for (const source of sources) {
    assert.ok(globSync(source, { cwd: release }).length > 0, `${source} is no file of the release`);
  }
  mkdirSync(root);
  const [user = ""] = texts(instructions, "USER");
  assert.equal(user, "10001:10001");
  const [entry = "", command = ""] = ["ENTRYPOINT", "CMD"].map((name) =>
    (JSON.parse(texts(instructions, name)[0]!) as string[]).join(" "),
  );
  const health = JSON.parse(/CMD (\[.*\])/.exec(texts(instructions, "HEALTHCHECK")[0]!)![1]!);
  const run = spawnSync(
    "unshare",
    ["--mount", "--net", "--pid", "--fork", "sh", "-e", SCRIPT, root, release],
    {
      encoding: "utf8",
      timeout: 300_000,
      env: {
        PATH: process.env["PATH"],
        // Packages of the base image are those of this machine.
        STEPS: texts(instructions, "RUN")
          .filter((text) => !text.includes("apt-get"))
          .map((text) => `( ${text} )`)
          .join(" && "),
        VARIABLES: texts(instructions, "ENV")[0]!.replace("$PATH", "/usr/bin:/bin"),
        IMAGE_USER: user,
        START: `${entry} ${command}`,
        HEALTH: (health as string[]).join(" "),
      },
    },
  );
  t.diagnostic(run.stdout.split("\n").slice(-8).join("\n"));
  assert.equal(run.status, 0, `${run.stdout.slice(-4_000)}${run.stderr.slice(-4_000)}`);
  assert.match(run.stdout, /^uid 10001$/m, "it runs as that user");
  assert.match(run.stdout, /^stopped with 0$/m);
});
