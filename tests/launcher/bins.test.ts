// All commands of package.json, started like a user does: version and help.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../..");
const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  bin: Record<string, string>;
};

for (const [name, path] of Object.entries(bin)) {
  test(`${name} prints its version and help, and exits with 0`, () => {
    const run = (flag: string) =>
      spawnSync(process.execPath, [join(root, path), flag], { encoding: "utf8", timeout: 30_000 });
    const version = run("--version");
    assert.equal(version.status, 0, version.stderr);
    assert.match(version.stdout, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n$`));
    assert.equal(version.stderr, "");
    const help = run("--help");
    assert.equal(help.status, 0, help.stderr);
    assert.match(help.stdout, new RegExp(name));
  });
}
