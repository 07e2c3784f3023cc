// Ejection and recovery of targets.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { allocateSharedBuffers, SharedTargetState } from "../../src/shared-state/index.ts";
import { TargetHealth } from "../../src/upstream/target-health.ts";

let nowMs = 0;
let targets: SharedTargetState;
let health: TargetHealth;

beforeEach(() => {
  nowMs = 5_000;
  targets = new SharedTargetState(allocateSharedBuffers(1).targets);
  health = new TargetHealth(targets, () => nowMs);
});

test("a refused connection ejects immediately, other failures after three in a row", () => {
  assert.equal(health.noteFailure(1, true), true);
  assert.equal(health.isEjected(1), true);
  assert.equal(health.noteFailure(2, false), false);
  assert.equal(health.noteFailure(2, false), false);
  health.noteSuccess(2);
  assert.equal(health.noteFailure(2, false), false);
  assert.equal(health.noteFailure(2, false), false);
  assert.equal(health.isEjected(2), false);
  assert.equal(health.noteFailure(2, false), true);
  assert.equal(health.isEjected(2), true);
  assert.equal(targets.readEjectionsTotal(2), 1);
});

test("each ejection without a success in between is twice as long, up to a minute", () => {
  for (const expectedMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    assert.equal(health.noteFailure(0, true), true);
    assert.equal(health.noteFailure(0, true), false, "out already");
    nowMs += expectedMs - 100;
    assert.equal(health.isEjected(0), true, `${expectedMs}`);
    nowMs += 200;
    assert.equal(health.isEjected(0), false, `${expectedMs}`);
  }
  health.noteSuccess(0);
  assert.equal(health.noteFailure(0, true), true);
  nowMs += 1_100;
  assert.equal(health.isEjected(0), false);
});

test("the first failure after an ejection ejects again", () => {
  health.noteFailure(0, true);
  nowMs += 1_100;
  assert.equal(health.isEjected(0), false);
  assert.equal(health.noteFailure(0, false), true);
});

test("a success of an attempt that started before the ejection does not end its backoff", () => {
  health.noteFailure(0, true);
  health.noteSuccess(0);
  assert.equal(targets.readEjections(0), 1);
  assert.equal(health.isEjected(0), true);
});

test("workers share the health of targets", () => {
  const other = new TargetHealth(targets, () => nowMs);
  health.noteFailure(7, true);
  assert.equal(other.isEjected(7), true);
  nowMs += 1_100;
  assert.equal(other.isEjected(7), false);
  assert.equal(health.readShare(7), 0.1);
  nowMs += 5_000;
  assert.ok(Math.abs(health.readShare(7) - 0.5) < 0.02);
});
