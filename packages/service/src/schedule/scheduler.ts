// Runs schedules: in time, without overlap, on one replica.
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { Lease, LeaseTable } from "./lease-table.ts";
import type { LastRun, ScheduleReport } from "./report.ts";
import type { Schedule } from "./schedule.ts";

/** Options of {@link Scheduler}. */
export interface SchedulerOptions {
  schedules: readonly Schedule[];
  /** Undefined without a database: then each replica runs all ticks. */
  leases: LeaseTable | undefined;
  clock: Clock;
  log: Logger;
  /** Called after each run. */
  onRun: (schedule: Schedule, outcome: "done" | "failed", durationMs: number) => void;
}

/** Interval of checking for due ticks: the precision of schedules. */
const CHECK_MS = 250;
/** A replica that dies during a run blocks its schedule for this time, unless it is restarted sooner. */
const LEASE_MS = 10_000;
const RENEW_MS = 3_000;
const NO_LEASE: Lease = { fence: 0 };
const ERROR_CHARACTERS_MAX = 500;

/** The schedules of a service. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #due = new Map<Schedule, number>();
  readonly #running = new Map<Schedule, Promise<void>>();
  readonly #last = new Map<Schedule, LastRun>();
  #onChange: () => void = () => undefined;
  readonly #stopping = new AbortController();
  #timer: RepeatingTimer | undefined;
  #checkedMs = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  /** Reads the state of all schedules and starts the timer. */
  async start(): Promise<void> {
    const { schedules, leases, clock, log } = this.#options;
    if (schedules.length === 0) return;
    await leases?.prepare();
    for (const schedule of schedules) await this.#readDue(schedule, clock.now());
    const check = (): void => void this.runDue();
    this.#timer = every(CHECK_MS, check, (error) => log.error("schedules failed", { error }));
  }

  /** Runs the ticks that are due now and waits for them; runs in flight are joined. */
  async runDue(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const nowMs = this.#options.clock.now();
    const wasSetBack = nowMs < this.#checkedMs;
    this.#checkedMs = nowMs;
    if (wasSetBack) {
      const { schedules } = this.#options;
      await Promise.all(schedules.map((schedule) => this.#readDue(schedule, nowMs)));
    }
    const due = Array.from(this.#due).filter(([, dueMs]) => dueMs <= nowMs);
    await Promise.all(
      due.map(([schedule, dueMs]) =>
        this.#begin(schedule, () => this.#runTick(schedule, dueMs, nowMs)),
      ),
    );
  }

  /** Runs a schedule now, in addition to its ticks, and waits for it; a run in flight is joined. False for an unknown name. */
  async runNow(name: string): Promise<boolean> {
    const schedule = this.#options.schedules.find((one) => one.name === name);
    if (schedule === undefined || this.#stopping.signal.aborted) return false;
    await this.#begin(schedule, () => this.#runExtra(schedule, this.#options.clock.now()));
    return true;
  }

  /** The schedules in the order of their declaration. */
  describe(): ScheduleReport[] {
    return this.#options.schedules.map((schedule) => {
      const dueMs = this.#due.get(schedule);
      return {
        name: schedule.name,
        timing: schedule.timing,
        next_run_at: dueMs === undefined ? null : new Date(dueMs).toISOString(),
        is_running: this.#running.has(schedule),
        last_run: this.#last.get(schedule) ?? null,
      };
    });
  }

  /** Calls a function after each change of `describe()`. */
  listen(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Stops: no run starts, those in flight are aborted and awaited. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the service is stopping"));
    await this.#timer?.stop();
    await Promise.all(this.#running.values());
  }

  #begin(schedule: Schedule, run: () => Promise<void>): Promise<void> {
    const running = this.#running.get(schedule);
    if (running !== undefined) return running;
    const started = run()
      .catch((error: unknown) => {
        this.#options.log.error("schedule failed", { schedule: schedule.name, error });
      })
      .finally(() => {
        this.#running.delete(schedule);
        this.#onChange();
      });
    this.#running.set(schedule, started);
    this.#onChange();
    return started;
  }

  async #runTick(schedule: Schedule, dueMs: number, nowMs: number): Promise<void> {
    const { leases } = this.#options;
    const nextMs = findNext(schedule, dueMs, nowMs);
    const lease =
      leases === undefined
        ? NO_LEASE
        : await leases.acquire(schedule.name, nowMs, LEASE_MS, nextMs);
    if (lease === undefined) {
      // Another replica has this tick, or runs an earlier one; the next check looks again.
      await this.#readDue(schedule, nowMs);
      return;
    }
    this.#due.set(schedule, nextMs);
    await this.#runLeased(schedule, dueMs, lease);
  }

  async #runExtra(schedule: Schedule, nowMs: number): Promise<void> {
    const { leases, log } = this.#options;
    const lease =
      leases === undefined
        ? NO_LEASE
        : await leases.acquireExtra(schedule.name, nowMs, nowMs + LEASE_MS);
    if (lease === undefined) {
      log.warn("schedule not run: another replica runs it", { schedule: schedule.name });
      return;
    }
    await this.#runLeased(schedule, nowMs, lease);
  }

  async #runLeased(schedule: Schedule, dueMs: number, lease: Lease): Promise<void> {
    const { leases, log } = this.#options;
    const lost = new AbortController();
    const renewal = every(
      RENEW_MS,
      async () => {
        const untilMs = this.#options.clock.now() + LEASE_MS;
        if ((await leases?.renew(schedule.name, lease, untilMs)) === false) {
          lost.abort(new Error("another replica has taken over the schedule"));
        }
      },
      (error) => log.warn("lease not renewed", { schedule: schedule.name, error }),
    );
    try {
      await this.#run(schedule, dueMs, lease, lost.signal);
    } finally {
      await renewal.stop();
      await leases?.release(schedule.name, lease);
    }
  }

  async #run(schedule: Schedule, dueMs: number, lease: Lease, lost: AbortSignal): Promise<void> {
    const { clock, log, onRun } = this.#options;
    const signal = AbortSignal.any([this.#stopping.signal, lost]);
    const startedMs = clock.monotonicMs();
    const startedAt = new Date(clock.now()).toISOString();
    let outcome: "done" | "failed" = "done";
    let reason: string | null = null;
    try {
      await schedule.work({
        signal,
        scheduledAt: new Date(dueMs),
        fence: lease.fence,
        log: log.child({ schedule: schedule.name }),
      });
    } catch (error) {
      outcome = "failed";
      reason = String(error).slice(0, ERROR_CHARACTERS_MAX);
      log.error("schedule failed", { schedule: schedule.name, error });
    }
    const durationMs = clock.monotonicMs() - startedMs;
    if (outcome === "done")
      log.debug("schedule", { schedule: schedule.name, duration_ms: durationMs });
    const duration_ms = Math.round(durationMs);
    this.#last.set(schedule, { started_at: startedAt, duration_ms, outcome, error: reason });
    onRun(schedule, outcome, durationMs);
  }

  async #readDue(schedule: Schedule, nowMs: number): Promise<void> {
    const { leases } = this.#options;
    const firstMs = schedule.findNext(nowMs);
    const state = await leases?.read(schedule.name, schedule.timing, firstMs);
    const dueMs = state?.dueMs ?? this.#due.get(schedule) ?? firstMs;
    // The clock was set back, and the schedule would pause until the due time. If that is only the tick after the next one,
    // the next one has run: a clock that is corrected by a little, or behind that of another replica, must not repeat it.
    const isLate = dueMs > firstMs && dueMs !== schedule.findNext(firstMs);
    if (isLate) await leases?.moveUp(schedule.name, firstMs);
    this.#due.set(schedule, isLate ? firstMs : dueMs);
  }
}

/** The tick after a due one: the first in the future, so that missed ticks run once. */
function findNext(schedule: Schedule, dueMs: number, nowMs: number): number {
  const nextMs = schedule.findNext(dueMs);
  return nextMs > nowMs ? nextMs : schedule.findNext(nowMs);
}
