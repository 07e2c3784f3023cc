// The schedules of all services, as their processes report them.
import { createHash } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { ScheduleReport } from "@platform/service/host";

/** Schedules of a service that are kept. */
const SCHEDULES_MAX = 1_000;

/** A schedule of a service. */
export interface KnownSchedule extends ScheduleReport {
  readonly id: string;
  /** Short name. */
  readonly service: string;
}

export class ScheduleRegistry {
  readonly #run: (service: string, name: string) => void;
  readonly #schedules = new Map<string, readonly KnownSchedule[]>();

  /** `run` passes a command to a service. */
  constructor(run: (service: string, name: string) => void) {
    this.#run = run;
  }

  /** Replaces the schedules of a service; last runs of its previous process are kept. */
  note(service: string, reports: readonly ScheduleReport[]): void {
    const before = this.#schedules.get(service) ?? [];
    const known = reports.slice(0, SCHEDULES_MAX).map((report) => {
      const id = createId(service, report.name);
      const last_run = report.last_run ?? before.find((one) => one.id === id)?.last_run ?? null;
      return { ...report, last_run, id, service };
    });
    this.#schedules.set(service, known);
  }

  /** Marks the schedules of a service whose process has ended: they have no next run. */
  suspend(service: string): void {
    const known = this.#schedules.get(service) ?? [];
    const suspended = known.map((one) => ({ ...one, next_run_at: null, is_running: false }));
    this.#schedules.set(service, suspended);
  }

  /** Forgets the schedules of a service that is no part of the platform any more. */
  remove(service: string): void {
    this.#schedules.delete(service);
  }

  /** All schedules. */
  list(): KnownSchedule[] {
    return [...this.#schedules.values()].flat();
  }

  /** Runs a schedule now. Throws 404 for an unknown id, 409 if it runs already or its service does not run. */
  run(id: string): KnownSchedule {
    const schedule = this.list().find((one) => one.id === id);
    if (schedule === undefined) throw new PlatformError("not_found", "There is no such schedule.");
    const { service, name, is_running: isRunning, next_run_at: next } = schedule;
    if (isRunning) throw new PlatformError("conflict", "The schedule runs already.");
    if (next === null) throw new PlatformError("conflict", `${service} is not running.`);
    this.#run(service, name);
    return schedule;
  }
}

// Names are cron expressions with slashes: they have no place in a path.
function createId(service: string, name: string): string {
  return createHash("sha256").update(`${service} ${name}`).digest("hex").slice(0, 16);
}
