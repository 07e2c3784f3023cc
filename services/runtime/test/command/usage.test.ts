// The command line itself: help, usage errors, suggestions and exit codes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { collectAnswers } from "../fixture/collect-answers.ts";
import { run } from "@platform/testing/platform-process";

test("the program prints its version and exits with 0, and with 2 after a wrong call", async () => {
  const version = run(["--version"]);
  assert.equal(await version.exit, 0);
  assert.match(version.output().out, /^platform 1\.0\.0\n$/);
  const wrong = run([]);
  assert.equal(await wrong.exit, 2);
  assert.match(wrong.output().err, /^platform 1\.0\.0: .*\n\nUsage: /);
});

test("the guide names every command", async () => {
  const help = run(["--help"]);
  assert.equal(await help.exit, 0);
  const [, commands = ""] = /^Commands\n([^]*?)\n\n/m.exec(help.output().out) ?? [];
  const names = [...commands.matchAll(/^ {2}([a-z]+(?: [a-z]+)?)/gm)].map(([, name]) => name!);
  assert.ok(names.length > 20);
  const guide = readFileSync(new URL("../../../../docs/guide/operate.md", import.meta.url), "utf8");
  for (const name of names) assert.ok(guide.includes(`\`platform ${name}`), name);
});

const answers: [args: string[], code: number, text: RegExp][] = [
  [["--version"], 0, /^platform 1\.0\.0\n$/],
  [["--help"], 0, /Usage: (?:\.\/)?platform <command> \[flags\]/],
  [[], 2, /Usage: (?:\.\/)?platform <command> \[flags\]/],
  [["up", "--help"], 0, /--gateway-addr ADDR[^]*PLATFORM_GATE_ADDR/],
  [["up", "--help"], 0, /^Usage: (?:\.\/)?platform up \[flags\]$/m],
  [["up", "--storag-addr", "x"], 2, /unknown flag; did you mean --storage-addr\?/],
  [["up", "--vault-addr", "x"], 2, /^platform: --storage-addr: .*"x" is not allowed/],
  [
    ["up", "--only", "gat"],
    1,
    /^platform: --only: unknown service "gat"; did you mean "gate"\?\n$/,
  ],
  [["up", "--only", "mesaging"], 1, /unknown service "mesaging"; did you mean "messaging"\?\n$/],
  [
    ["up", "--help"],
    0,
    /--only LIST +Start only these services: .*identity, storage, messaging, tunnel,\s+gateway/,
  ],
  [["up", "--prot", "1"], 2, /^platform: --prot: unknown flag/],
  [["upp"], 2, /unknown command; did you mean "up"\?/],
  [["user", "ad", "ann"], 2, /^platform: user ad: unknown command; did you mean "user add"\?/],
  [["app"], 2, /^platform: app: expected one of: app add, app allow, app remove, app list\n/],
  [["stop"], 2, /unknown command; did you mean "down"\?/],
  [["help", "logs"], 0, /^platform logs: Show the log/],
  [["usr", "add", "ann"], 2, /unknown command; did you mean "user add"\?/],
  [
    ["app", "add"],
    2,
    /^platform: app add: needs <name>\nplatform: usage: (?:\.\/)?platform app add <name>/,
  ],
  [["status", "--jsn"], 2, /^platform: --jsn: unknown flag; did you mean --json\?/],
  [
    ["app", "--help"],
    0,
    /Commands\n {2}app add <name>[^]*\n {2}app allow <name>[^]*\n {2}app remove <name>[^]*\n {2}app list .*\n\nFlags/,
  ],
  [["logs", "--help"], 0, /Examples\n {2}(?:\.\/)?platform logs identity --level warn\n/],
  [["app", "add", "--help"], 0, /--topic LIST[^]*any\s+number\s+of\s+levels/],
  [["run", "x.service.ts", "--watch"], 1, /^platform: x\.service\.ts does not exist; name a file/],
  [["deploy", "x.service.ts", "--target", "docker"], 1, /^platform: x\.service\.ts does not exist/],
];
// One process for all of them: each would load the same modules.
const given = collectAnswers(answers.map(([args]) => args));
for (const [index, [args, code, text]] of answers.entries()) {
  test(`platform ${args.join(" ")} exits with ${code}`, async () => {
    const { exitCode, out, err } = (await given)[index]!;
    assert.equal(exitCode, code, out + err);
    assert.match(code === 0 ? out : err, text);
  });
}
