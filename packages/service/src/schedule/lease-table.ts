// Leases of schedules in the database: one replica runs a tick, also if clocks differ a little or a process dies.
import type { Migration } from "@platform/kernel/db";
import type { Database } from "../database/database.ts";

/** State of a schedule that all replicas share. */
export interface ScheduleState {
  /** Time of the next tick in ms since 1970. */
  readonly dueMs: number;
}

/** A lease. Its fence grows with each one, so that a late writer can be recognized. */
export interface Lease {
  readonly fence: number;
}

const MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-schedules",
    statements: ({ text, integer }) => [
      `create table platform_schedules (
        name ${text} primary key,
        timing ${text} not null,
        due_at ${integer} not null,
        owner ${text} not null,
        fence ${integer} not null,
        leased_until ${integer} not null
      )`,
    ],
  },
];

/** The table of one database. */
export class LeaseTable {
  readonly #database: Database;
  readonly #owner: string;

  /** `owner` identifies this process: no other living process has it. */
  constructor(database: Database, owner: string) {
    this.#database = database;
    this.#owner = owner;
  }

  /** Creates the table, and ends the leases of an earlier process with this identity: it died during their runs. */
  async prepare(): Promise<void> {
    const opened = await this.#database.open();
    await opened.migrate(MIGRATIONS, undefined, "schedules");
    await this.#database.run`update platform_schedules set leased_until = 0
      where owner = ${this.#owner} and leased_until > 0`;
  }

  /** Reads a schedule; adds it if it is new, or if its timing was changed. */
  async read(name: string, timing: string, dueMs: number): Promise<ScheduleState> {
    const database = this.#database;
    await database.run`insert into platform_schedules (name, timing, due_at, owner, fence, leased_until)
      values (${name}, ${timing}, ${dueMs}, '', 0, 0) on conflict (name) do update
      set timing = excluded.timing, due_at = excluded.due_at
      where platform_schedules.timing <> excluded.timing`;
    const row = await database.one<{ due_at: number }>`
      select due_at from platform_schedules where name = ${name}`;
    return { dueMs: row!.due_at };
  }

  /** Moves the next tick to an earlier time. */
  async moveUp(name: string, dueMs: number): Promise<void> {
    await this.#database.run`update platform_schedules set due_at = ${dueMs}
      where name = ${name} and due_at > ${dueMs}`;
  }

  /**
   * Acquires the lease of a due tick and moves the schedule to its next one; undefined if another replica has it. A lease
   * that ends much later than any new one is of a process that died before the clock was set back.
   */
  async acquire(
    name: string,
    nowMs: number,
    leaseMs: number,
    nextDueMs: number,
  ): Promise<Lease | undefined> {
    const row = await this.#database.one<{ fence: number }>`
      update platform_schedules
      set owner = ${this.#owner}, fence = fence + 1, leased_until = ${nowMs + leaseMs}, due_at = ${nextDueMs}
      where name = ${name} and due_at <= ${nowMs}
        and (leased_until <= ${nowMs} or leased_until > ${nowMs + 2 * leaseMs}) returning fence`;
    return row === undefined ? undefined : { fence: row.fence };
  }

  /** Acquires the lease of a run between the ticks; undefined while another replica has it. */
  async acquireExtra(name: string, nowMs: number, untilMs: number): Promise<Lease | undefined> {
    const row = await this.#database.one<{ fence: number }>`
      update platform_schedules
      set owner = ${this.#owner}, fence = fence + 1, leased_until = ${untilMs}
      where name = ${name} and leased_until <= ${nowMs} returning fence`;
    return row === undefined ? undefined : { fence: row.fence };
  }

  /** Extends a lease; false if it was lost. */
  async renew(name: string, { fence }: Lease, untilMs: number): Promise<boolean> {
    const { changes } = await this.#database.run`
      update platform_schedules set leased_until = ${untilMs}
      where name = ${name} and owner = ${this.#owner} and fence = ${fence}`;
    return changes === 1;
  }

  /** Ends a lease. */
  async release(name: string, { fence }: Lease): Promise<void> {
    await this.#database.run`update platform_schedules set leased_until = 0
      where name = ${name} and owner = ${this.#owner} and fence = ${fence}`;
  }
}
