// Subjects that the operator has cut off: they can neither connect nor use the API.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { CutSubjectRow, TunnelDatabase } from "../database/schema.ts";
import { OPERATOR } from "../identity.ts";

/** All cut-off subjects. */
export class Subjects {
  readonly #database: TunnelDatabase;
  readonly #clock: Clock;
  readonly #cut = new Map<string, CutSubjectRow>();

  constructor(database: TunnelDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Reads all rows into memory. */
  async load(): Promise<void> {
    const rows = await this.#database.db.selectFrom("tunnel_cut_subjects").selectAll().execute();
    for (const row of rows) this.#cut.set(row.subject, row);
  }

  /** Cut-off subjects by name. */
  list(): CutSubjectRow[] {
    return [...this.#cut.values()].sort((one, other) => (one.subject < other.subject ? -1 : 1));
  }

  /** True if the subject is cut off. */
  isCutOff(subject: string): boolean {
    return this.#cut.has(subject);
  }

  /** Throws 403 if the subject is cut off. */
  expectAllowed(subject: string): void {
    if (!this.isCutOff(subject)) return;
    throw new PlatformError("forbidden", "The operator of this relay has cut off this subject.");
  }

  /** Cuts a subject off; its connections are closed by the caller. */
  async cutOff(subject: string, reason: string): Promise<CutSubjectRow> {
    if (subject === OPERATOR) {
      throw new PlatformError("validation_failed", "The operator cannot be cut off.");
    }
    const row = { subject, reason, cut_at: this.#clock.now() };
    await this.#database.db
      .insertInto("tunnel_cut_subjects")
      .values(row)
      .onConflict((conflict) => conflict.column("subject").doUpdateSet({ reason }))
      .execute();
    this.#cut.set(subject, row);
    return row;
  }

  /** Admits a subject again; false if it was not cut off. */
  async readmit(subject: string): Promise<boolean> {
    await this.#database.db
      .deleteFrom("tunnel_cut_subjects")
      .where("subject", "=", subject)
      .execute();
    return this.#cut.delete(subject);
  }
}
