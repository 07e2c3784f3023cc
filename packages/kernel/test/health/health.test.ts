// Health: responses of both probes in all states, with checks that pass, fail, throw and hang.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HealthRegistry, type HealthOptions } from "@platform/kernel/health";

const make = (more: Partial<HealthOptions> = {}): HealthRegistry =>
  new HealthRegistry({ service: "gate", version: "1.0.0", reuseMs: 0, ...more });
const UP = { status: 200, body: { status: "UP", service: "gate", version: "1.0.0" } };

test("a starting service is alive but not ready, with the reason", async () => {
  const health = make();
  assert.deepEqual(health.live(), UP);
  assert.deepEqual(await health.ready(), {
    status: 503,
    body: {
      status: "DOWN",
      service: "gate",
      version: "1.0.0",
      checks: { lifecycle: { status: "DOWN", detail: "starting" } },
    },
  });
});

test("a ready service without checks returns 200", async () => {
  const health = make();
  health.setState("ready");
  assert.deepEqual(await health.ready(), UP);
});

test("a draining service is alive and permanently not ready", async () => {
  const health = make();
  health.setState("draining");
  health.setState("ready");
  assert.equal(health.state, "draining");
  assert.deepEqual(health.live(), UP);
  assert.equal((await health.ready()).status, 503);
});

test("one failing check makes the service unready, and all checks are listed", async () => {
  const health = make();
  health.setState("ready");
  health.addCheck("db", () => undefined);
  const remove = health.addCheck("smtp", async () => "refused");
  assert.deepEqual((await health.ready()).body.checks, {
    db: { status: "UP" },
    smtp: { status: "DOWN", detail: "refused" },
  });
  remove();
  assert.deepEqual(await health.ready(), UP);
});

test("errors of checks are reported internally and not sent", async () => {
  const told: unknown[] = [];
  const health = make({ onCheckError: (name, error) => told.push([name, String(error)]) });
  health.setState("ready");
  health.addCheck("db", () => {
    throw new Error("password wrong for postgres://u:secret@h");
  });
  assert.deepEqual((await health.ready()).body.checks, {
    db: { status: "DOWN", detail: "failed" },
  });
  assert.deepEqual(told, [["db", "Error: password wrong for postgres://u:secret@h"]]);
});

test("a hanging check is aborted at its timeout", async () => {
  const health = make({ checkTimeoutMs: 5 });
  health.setState("ready");
  let aborted = false;
  health.addCheck("db", (signal) => {
    signal.addEventListener("abort", () => (aborted = true));
    return new Promise(() => {});
  });
  const answer = await health.ready();
  assert.equal(answer.body.checks?.["db"]?.detail, "no response within 5 ms");
  assert.equal(aborted, true);
});

test("probes within the reuse time share one round of checks", async () => {
  let at = 0;
  let runs = 0;
  const health = make({ reuseMs: 500, now: () => at });
  health.setState("ready");
  health.addCheck("db", () => {
    runs += 1;
    return undefined;
  });
  await Promise.all([health.ready(), health.ready()]);
  at = 499;
  await health.ready();
  assert.equal(runs, 1);
  at = 500;
  await health.ready();
  assert.equal(runs, 2);
});

test("duplicate and reserved check names are rejected", () => {
  const health = make();
  health.addCheck("db", () => undefined);
  assert.throws(() => health.addCheck("db", () => undefined), /duplicate/);
  assert.throws(() => health.addCheck("lifecycle", () => undefined), /duplicate/);
});
