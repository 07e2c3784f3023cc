// The share of cold reads: what they take while others use the log, and while nobody does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ColdShare } from "../../src/cold/cold-share.ts";

const MIB = 1024 * 1024;

/**
 * Readers that ask for 1 MiB as soon as they may, for `ms`, beside a commit each 10 ms that takes `commitMs` plus
 * `slowdown(MiB/s)`. Returns MiB per second of the last second.
 */
function run(
  share: ColdShare,
  startMs: number,
  ms: number,
  commit?: { usualMs: number; slowdown: (rate: number) => number },
): number {
  let freeMs = startMs;
  let granted: number[] = [];
  for (let now = startMs; now < startMs + ms; now += 1) {
    // A processor delivers 300 MiB/s, if nothing bounds it.
    if (now >= freeMs) {
      const waitMs = share.take(MIB, now);
      freeMs = now + Math.max(waitMs, 1_000 / 300);
      granted.push(freeMs);
    }
    granted = granted.filter((at) => at > now - 1_000);
    if (commit !== undefined && now % 10 === 0)
      share.noteCommit(commit.usualMs + commit.slowdown(granted.length), now);
  }
  return granted.length;
}

test("nothing waits while only history is read", () => {
  const share = new ColdShare();
  assert.ok(run(share, 0, 3_000) > 200);
  assert.equal(share.rate, Number.POSITIVE_INFINITY);
});

test("reads that slow commits down fall to a rate that does not, and are free again after the last commit", () => {
  const share = new ColdShare();
  // Above 40 MiB/s commits wait.
  const commit = { usualMs: 4, slowdown: (rate: number) => Math.max(0, rate - 40) };
  const beside = run(share, 0, 20_000, commit);
  assert.ok(beside >= 4 && beside <= 60, `${beside} MiB/s`);
  assert.ok(run(share, 20_000, 4_000) > 200);
});

test("reads that harm nobody are not bounded for long", () => {
  const share = new ColdShare();
  const beside = run(share, 0, 60_000, { usualMs: 4, slowdown: () => 0 });
  assert.ok(beside > 200, `${beside} MiB/s`);
});

test("a late event loop bounds reads only while somebody reads local records", () => {
  const late = (isUsed: boolean): number => {
    const share = new ColdShare();
    for (let now = 0; now < 5_000; now += 10) {
      if (isUsed) share.noteLocalRead(now);
      const isCalm = share.rate < 8 * MIB;
      share.noteLateness(isCalm ? 1 : 30, now);
      share.take(2 * MIB, now);
    }
    return share.rate;
  };
  assert.ok(late(true) < 40 * MIB);
  assert.equal(late(false), Number.POSITIVE_INFINITY);
});

test("reads begin low beside commits, and again after a pause", () => {
  const share = new ColdShare();
  const commit = { usualMs: 4, slowdown: () => 0 };
  for (let now = 0; now < 1_000; now += 10) share.noteCommit(4, now);
  assert.ok(share.rate <= 4 * MIB);
  const first = run(share, 1_000, 1_000, commit);
  assert.ok(first < 16, `${first} MiB/s`);
  assert.ok(run(share, 2_000, 20_000, commit) > 100);
  for (let now = 22_000; now < 27_000; now += 10) share.noteCommit(4, now);
  assert.ok(share.rate <= 32 * MIB, `${share.rate / MIB} MiB/s`);
});

test("a rate that nobody has tried does not grow", () => {
  const share = new ColdShare();
  for (let now = 0; now < 60_000; now += 10) {
    share.noteCommit(4, now);
    if (now % 1_000 === 0) share.take(MIB, now);
  }
  assert.ok(share.rate <= 8 * MIB, `${share.rate / MIB} MiB/s`);
});

test("reads yield when some commits are much slower, though their mean is hardly", () => {
  const rateBeside = (slowMs: number): number => {
    const share = new ColdShare();
    for (let now = 0; now < 3_000; now += 2) share.noteCommit(now % 100 === 0 ? 5 : 2, now);
    for (let now = 3_000; now < 13_000; now += 2) {
      // One of fifty, as the slowest percentiles of users.
      const isSlow = now % 100 === 0;
      const isMuch = share.rate > 16 * MIB;
      share.noteCommit(isSlow ? (isMuch ? slowMs : 5) : 2, now);
      share.take(share.rate / 500, now);
    }
    return share.rate;
  };
  assert.ok(rateBeside(5) > 40 * MIB);
  assert.ok(rateBeside(20) <= 20 * MIB);
});

test("bytes of the store pass at the rate, those of several objects together", () => {
  const share = new ColdShare();
  assert.equal(share.receive(MIB, 0), 0);
  for (let now = 0; now < 200; now += 10) share.noteCommit(4, now);
  const waits = [0, 1, 2, 3].map(() => share.receive(MIB, 200));
  assert.deepEqual(waits, [250, 500, 750, 1_000]);
  assert.equal(share.take(MIB, 200), 0, "what is delivered waits for itself");
});

test("reads go on at the lowest rate beside commits that stay slow", () => {
  const share = new ColdShare();
  run(share, 0, 2_000, { usualMs: 2, slowdown: () => 0 });
  const rate = run(share, 2_000, 10_000, { usualMs: 500, slowdown: () => 0 });
  assert.ok(rate >= 3, `${rate} MiB/s`);
});
