// Schedules: one run at a time, over replicas and restarts.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import { createLogger } from "@platform/kernel/log";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import { Database } from "../../src/database/database.ts";
import { LeaseTable } from "../../src/schedule/lease-table.ts";
import { Schedule, type Work } from "../../src/schedule/schedule.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";

const MINUTE = 60_000;

async function startReplica(
  t: TestContext,
  url: string | undefined,
  clock: ManualClock,
  work: Work,
  timing = "1m",
): Promise<Scheduler> {
  const database = new Database("jobs", url === undefined ? {} : { url }, () => {
    return { url: undefined, dataFolder: "unused", inMemory: false, declared: [] };
  });
  const scheduler = new Scheduler({
    schedules: [new Schedule(timing, work, "clean")],
    leases: url === undefined ? undefined : new LeaseTable(database, crypto.randomUUID()),
    clock,
    log: createLogger({ service: "test", write: () => {} }),
    onRun: () => {},
  });
  t.after(async () => {
    await scheduler.stop();
    await database.close();
  });
  await scheduler.start();
  return scheduler;
}

function createFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "schedules-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return `sqlite:${join(folder, "jobs.sqlite")}`;
}

async function checkReplicas(t: TestContext, url: string): Promise<void> {
  const clock = createManualClock(0);
  const fences: number[] = [];
  const work: Work = ({ fence }) => void fences.push(fence);
  const replicas = await Promise.all([1, 2, 3].map(() => startReplica(t, url, clock, work)));
  for (let minute = 1; minute <= 4; minute++) {
    clock.advance(MINUTE);
    await Promise.all(replicas.map((replica) => replica.runDue()));
    assert.equal(fences.length, minute);
  }
  assert.deepEqual(fences, [1, 2, 3, 4]);
}

test("one of several replicas runs each tick, with a growing fence", async (t) => {
  await checkReplicas(t, createFile(t));
});

test(
  "one of several replicas runs each tick on PostgreSQL",
  { skip: findPostgresSkip() },
  async (t) => {
    const cluster = await startPostgresCluster();
    t.after(() => cluster.stop());
    await checkReplicas(t, await cluster.createDatabase());
  },
);

test("ticks missed while no replica runs are made up by one run", async (t) => {
  const url = createFile(t);
  const clock = createManualClock(0);
  const runs: number[] = [];
  const work: Work = ({ scheduledAt }) => void runs.push(scheduledAt.getTime());
  const first = await startReplica(t, url, clock, work);
  await first.stop();
  clock.advance(10 * MINUTE + 5);
  const second = await startReplica(t, url, clock, work);
  await second.runDue();
  await second.runDue();
  assert.deepEqual(runs, [MINUTE]);
  clock.advance(MINUTE);
  await second.runDue();
  assert.equal(runs.length, 2);
});

for (const [title, isLocal] of [
  ["", false],
  [" without a database", true],
] as const) {
  test(`schedules continue after the clock was set forward and back again${title}`, async (t) => {
    const url = createFile(t);
    const clock = createManualClock(0);
    const runs: number[] = [];
    const work: Work = ({ scheduledAt }) => void runs.push(scheduledAt.getTime());
    const scheduler = await startReplica(t, isLocal ? undefined : url, clock, work);
    clock.setNow(180 * MINUTE);
    await scheduler.runDue();
    assert.deepEqual(runs, [MINUTE], "the missed ticks run once");
    clock.setNow(MINUTE / 2);
    await scheduler.runDue();
    assert.equal(runs.length, 1);
    clock.advance(MINUTE);
    await scheduler.runDue();
    assert.deepEqual(runs, [MINUTE, 1.5 * MINUTE]);
  });
}

for (const [title, isLocal] of [
  ["", false],
  [" without a database", true],
] as const) {
  test(`a tick runs once if the clock goes back behind it by a little${title}`, async (t) => {
    const url = isLocal ? undefined : createFile(t);
    const clock = createManualClock(MINUTE - 1_000);
    const runs: number[] = [];
    const work: Work = ({ scheduledAt }) => void runs.push(scheduledAt.getTime());
    const scheduler = await startReplica(t, url, clock, work, "* * * * *");
    for (const nowMs of [MINUTE + 1, MINUTE - 2, MINUTE + 2]) {
      clock.setNow(nowMs);
      await scheduler.runDue();
    }
    assert.deepEqual(runs, [MINUTE]);
    clock.setNow(2 * MINUTE);
    await scheduler.runDue();
    assert.deepEqual(runs, [MINUTE, 2 * MINUTE]);
  });
}

test("a replica whose clock is behind does not repeat a tick when it starts", async (t) => {
  const url = createFile(t);
  const runs: number[] = [];
  const work: Work = ({ scheduledAt }) => void runs.push(scheduledAt.getTime());
  const ahead = createManualClock(MINUTE - 1_000);
  const first = await startReplica(t, url, ahead, work, "* * * * *");
  ahead.setNow(MINUTE);
  await first.runDue();
  const behind = createManualClock(MINUTE - 300);
  const second = await startReplica(t, url, behind, work, "* * * * *");
  behind.advance(300);
  await second.runDue();
  assert.deepEqual(runs, [MINUTE]);
});

test("a tick and a lease of the future do not stop a process that starts after the clock was set back", async (t) => {
  const url = createFile(t);
  const future = createManualClock(180 * MINUTE);
  const dying = Promise.withResolvers<void>();
  t.after(() => dying.resolve());
  const first = await startReplica(t, url, future, () => dying.promise);
  future.advance(MINUTE);
  const dead = first.runDue();
  t.after(() => dead);
  await waitFor(() => first.describe()[0]!.is_running);
  const clock = createManualClock(0);
  const runs: number[] = [];
  const second = await startReplica(t, url, clock, () => void runs.push(clock.now()));
  clock.advance(MINUTE);
  await second.runDue();
  assert.deepEqual(runs, [MINUTE]);
});

test("a run does not overlap the next tick, on its own and on other replicas", async (t) => {
  const url = createFile(t);
  const clock = createManualClock(0);
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let active = 0;
  let peak = 0;
  const work: Work = async () => {
    peak = Math.max(peak, ++active);
    begun.resolve();
    await gate.promise;
    active--;
  };
  const [one, two] = await Promise.all([1, 2].map(() => startReplica(t, url, clock, work, "1s")));
  clock.advance(1_000);
  const running = Promise.all([one!.runDue(), two!.runDue()]);
  await begun.promise;
  clock.advance(1_000);
  const next = Promise.all([one!.runDue(), two!.runDue()]);
  assert.equal(active, 1);
  gate.resolve();
  await Promise.all([running, next]);
  assert.equal(peak, 1);
});

test("the lease of a replica that died ends, and its run is repeated with a higher fence", async (t) => {
  const url = createFile(t);
  const clock = createManualClock(0);
  const database = new Database("jobs", { url }, () => {
    return { url: undefined, dataFolder: "unused", inMemory: false, declared: [] };
  });
  t.after(() => database.close());
  const dead = new LeaseTable(database, "dead");
  await dead.prepare();
  await dead.read("clean", "1m", MINUTE);
  clock.advance(MINUTE);
  assert.deepEqual(await dead.acquire("clean", MINUTE, 30_000, 2 * MINUTE), { fence: 1 });
  const fences: number[] = [];
  const other = await startReplica(t, url, clock, ({ fence }) => void fences.push(fence));
  await other.runDue();
  assert.deepEqual(fences, []);
  clock.advance(MINUTE);
  await other.runDue();
  assert.deepEqual(fences, [2]);
  assert.equal(await dead.renew("clean", { fence: 1 }, 10 * MINUTE), false);
});

test("a failing run is logged and the schedule continues", async (t) => {
  const clock = createManualClock(0);
  let runs = 0;
  const scheduler = await startReplica(t, createFile(t), clock, () => {
    runs++;
    throw new Error("disk full");
  });
  for (let tick = 0; tick < 2; tick++) {
    clock.advance(MINUTE);
    await scheduler.runDue();
  }
  assert.equal(runs, 2);
});

test("stopping aborts the run in flight and waits for it", async (t) => {
  const clock = createManualClock(0);
  const begun = Promise.withResolvers<void>();
  let isDone = false;
  const scheduler = await startReplica(t, createFile(t), clock, async ({ signal }) => {
    begun.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    isDone = true;
  });
  clock.advance(MINUTE);
  void scheduler.runDue();
  await begun.promise;
  await scheduler.stop();
  assert.ok(isDone);
});

test("a run on request is additional: the next tick stays, and its outcome is described", async (t) => {
  const url = createFile(t);
  const clock = createManualClock(0);
  const fences: number[] = [];
  const gate = Promise.withResolvers<void>();
  const work: Work = async ({ fence }) => {
    fences.push(fence);
    if (fence === 1) await gate.promise;
    else throw new Error("broken");
  };
  const first = await startReplica(t, url, clock, work);
  const second = await startReplica(t, url, clock, work);
  let changes = 0;
  first.listen(() => (changes += 1));
  assert.equal(await first.runNow("unknown"), false);
  const running = first.runNow("clean");
  assert.equal(first.describe()[0]!.is_running, true);
  await waitFor(() => fences.length === 1);
  // One that runs elsewhere is not run twice, and one that runs here is joined.
  await second.runNow("clean");
  const joined = first.runNow("clean");
  gate.resolve();
  assert.deepEqual(await Promise.all([running, joined]), [true, true]);
  assert.deepEqual(fences, [1]);
  assert.deepEqual(first.describe(), [
    {
      name: "clean",
      timing: "1m",
      next_run_at: new Date(MINUTE).toISOString(),
      is_running: false,
      last_run: {
        started_at: new Date(0).toISOString(),
        duration_ms: 0,
        outcome: "done",
        error: null,
      },
    },
  ]);
  assert.equal(changes, 2);
  clock.advance(MINUTE);
  await first.runDue();
  const { last_run: last, next_run_at: next } = first.describe()[0]!;
  assert.equal(last!.outcome, "failed");
  assert.match(last!.error!, /broken/);
  assert.equal(next, new Date(2 * MINUTE).toISOString());
});

test("the log lines of a run name its schedule", async () => {
  const lines: Record<string, unknown>[] = [];
  const clock = createManualClock(0);
  const scheduler = new Scheduler({
    schedules: [new Schedule("1m", ({ log }) => log.info("cleaned", { removed: 3 }), "clean")],
    leases: undefined,
    clock,
    log: createLogger({
      service: "test",
      write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
    }),
    onRun: () => {},
  });
  await scheduler.start();
  clock.advance(MINUTE);
  await scheduler.runDue();
  await scheduler.stop();
  const [{ msg, schedule, removed } = {}] = lines;
  assert.deepEqual({ msg, schedule, removed }, { msg: "cleaned", schedule: "clean", removed: 3 });
});
