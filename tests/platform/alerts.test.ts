// deploy/alerts.yml in Prometheus' own checker, on series that must raise each alert and on series that must not.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const rules = fileURLToPath(new URL("../../deploy/alerts.yml", import.meta.url));
const cases = fileURLToPath(new URL("alerts/rules.yml", import.meta.url));
const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = hasPromtool || isRequired ? false : "the Debian package prometheus is not installed";

function run(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
}

test("the rules are valid, and each raises its alert", { skip }, () => {
  run("check", "rules", rules);
  run("test", "rules", cases);
});

test("every alert has a remedy and a case that raises it", () => {
  const text = readFileSync(rules, "utf8");
  const raised = readFileSync(cases, "utf8");
  const alerts = text.split(/^ {6}- alert: /m).slice(1);
  assert.ok(alerts.length > 10);
  for (const alert of alerts) {
    const name = /^\w+/.exec(alert)![0];
    for (const part of ["severity: ", "summary: ", "remedy: "]) {
      assert.ok(alert.includes(part), `${name} has no ${part}`);
    }
    assert.ok(raised.includes(`alertname="${name}"`), `no case raises ${name}`);
  }
});
