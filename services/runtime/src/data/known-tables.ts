// The tables of databases for a few seconds: a person turns pages more often than a migration changes their tables.
import type { Clock } from "@platform/kernel/time";
import type { DataTable } from "./table.ts";

const KEPT_MS = 3_000;
const DATABASES_MAX = 32;

interface Known {
  readonly tables: readonly DataTable[];
  readonly readAtMs: number;
}

/** Tables that were read a moment ago, by the name of their database. They can be outdated: the database has the last word. */
export class KnownTables {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keep(database: string, tables: readonly DataTable[]): void {
    this.#known.delete(database);
    this.#known.set(database, { tables, readAtMs: this.#clock.monotonicMs() });
    if (this.#known.size <= DATABASES_MAX) return;
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest!);
  }

  find(database: string, table: string): DataTable | undefined {
    const known = this.#known.get(database);
    if (known === undefined) return undefined;
    if (this.#clock.monotonicMs() - known.readAtMs > KEPT_MS) {
      this.#known.delete(database);
      return undefined;
    }
    return known.tables.find(({ name }) => name === table);
  }
}
