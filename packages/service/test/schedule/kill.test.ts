// Replicas that are killed during a run: the schedule continues, and no tick runs twice.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createInterface } from "node:readline";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Kills of each test; the long form makes more. */
const KILLS = Number(process.env["PLATFORM_SCHEDULE_KILLS"] ?? 1);
const SERVICE = fileURLToPath(new URL("../fixture/scheduled-service.ts", import.meta.url));
const LEASE_MS = 10_000;
/** For a service that starts on a busy machine. */
const WAIT_MS = 60_000;

interface Run {
  fence: number;
  scheduled_at: number;
  pid: number;
  begun_at: number;
  ended_at: number | null;
}

interface Row {
  fence: number;
  leased_until: number;
}

/** The replicas of a test, on one SQLite file. */
class Stage {
  readonly #folder: string;
  readonly #running = new Set<ChildProcess>();

  constructor(t: TestContext) {
    this.#folder = mkdtempSync(join(tmpdir(), "schedule-kill-"));
    t.after(async () => {
      for (const child of this.#running) await this.kill(child);
      rmSync(this.#folder, { recursive: true });
    });
  }

  /** Starts a replica on a data folder of this name; resolves when it is ready. */
  async start(replica: string): Promise<ChildProcess> {
    const env = {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      PLATFORM_DATA_DIR: join(this.#folder, replica),
      DATABASE_URL: `sqlite:${this.#file}`,
      PLATFORM_LOG_FORMAT: "json",
    };
    const child = spawn(process.execPath, [SERVICE], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.#running.add(child);
    for await (const line of createInterface({ input: child.stdout })) {
      if ((JSON.parse(line) as { msg: string }).msg !== "ready") continue;
      child.stdout.resume();
      return child;
    }
    throw new Error("the service did not start");
  }

  async kill(child: ChildProcess): Promise<void> {
    this.#running.delete(child);
    const exited = once(child, "exit");
    if (!child.kill("SIGKILL")) return;
    await exited;
  }

  /** Kills a replica while it runs the schedule; returns the lease that it leaves. */
  async killInRun(child: ChildProcess): Promise<Row> {
    const { begun_at } = (await this.waitForRun(({ pid }) => pid === child.pid)).at(-1)!;
    await this.waitForRun((run) => run.pid === child.pid && run.begun_at > begun_at);
    await this.kill(child);
    const last = this.list().at(-1)!;
    assert.deepEqual([last.pid, last.ended_at], [child.pid, null], "not killed during a run");
    return this.#read<Row>("select fence, leased_until from platform_schedules")[0]!;
  }

  /** All runs, once the last one is of this kind. */
  async waitForRun(isWanted: (run: Run) => boolean): Promise<Run[]> {
    const endsMs = performance.now() + WAIT_MS;
    for (;;) {
      const runs = this.list();
      if (runs.length > 0 && isWanted(runs.at(-1)!)) return runs;
      assert.ok(performance.now() < endsMs, `no such run: ${JSON.stringify(runs.at(-1))}`);
      await sleep(20);
    }
  }

  list(): Run[] {
    return this.#read<Run>("select * from runs order by fence");
  }

  get #file(): string {
    return join(this.#folder, "runs.sqlite");
  }

  #read<T>(statement: string): T[] {
    const database = new DatabaseSync(this.#file, { readOnly: true, timeout: 5_000 });
    try {
      return database.prepare(statement).all() as T[];
    } finally {
      database.close();
    }
  }
}

/** The unique index of the fixture refuses a tick that runs twice; runs must not overlap either. */
function checkRuns(runs: readonly Run[], killed: number): void {
  let endMs = 0;
  for (const { begun_at, ended_at, fence } of runs) {
    assert.ok(begun_at >= endMs, `run ${fence} began before another one ended`);
    endMs = ended_at ?? begun_at;
  }
  const unfinished = runs.slice(0, -1).filter(({ ended_at }) => ended_at === null);
  assert.equal(unfinished.length, killed);
}

describe("replicas that are killed during a run", { concurrency: true }, () => {
  test(`a replica that is killed ${KILLS} times during a run continues its schedule at its next start`, async (t) => {
    const stage = new Stage(t);
    let child = await stage.start("one");
    for (let kill = 0; kill < KILLS; kill++) {
      const left = await stage.killInRun(child);
      child = await stage.start("one");
      const runs = await stage.waitForRun(({ fence }) => fence > left.fence);
      const { begun_at, fence } = runs.find((run) => run.fence > left.fence)!;
      assert.equal(fence, left.fence + 1);
      assert.ok(begun_at < left.leased_until, "it waited for the end of the lease");
    }
    checkRuns(stage.list(), KILLS);
  });

  test(`of two replicas one is killed ${KILLS} times during a run: the schedule continues within the lease, each tick once`, async (t) => {
    const stage = new Stage(t);
    const names = ["one", "two"] as const;
    const replicas = { one: await stage.start("one"), two: await stage.start("two") };
    for (let kill = 0; kill < KILLS; kill++) {
      const { pid } = stage.list().at(-1) ?? (await stage.waitForRun(() => true)).at(-1)!;
      const name = names.find((one) => replicas[one].pid === pid)!;
      const left = await stage.killInRun(replicas[name]);
      const isRestarted = kill % 2 === 1;
      if (isRestarted) replicas[name] = await stage.start(name);
      const [next] = (await stage.waitForRun(({ fence }) => fence > left.fence)).slice(-1);
      const boundMs = isRestarted ? left.leased_until : left.leased_until + LEASE_MS / 2;
      assert.ok(
        next!.begun_at < boundMs,
        `continued ${next!.begun_at - left.leased_until} ms late`,
      );
      if (!isRestarted && kill + 1 < KILLS) replicas[name] = await stage.start(name);
    }
    checkRuns(stage.list(), KILLS);
  });
});
