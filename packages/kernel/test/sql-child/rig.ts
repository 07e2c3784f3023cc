// A pool of children, and questions to it.
import type { TestContext } from "node:test";
import {
  SqlChildren,
  type SqlAnswer,
  type SqlChildrenOptions,
  type SqlDatabase,
  type SqlLimits,
  type SqlOutcome,
  type SqlQuestion,
} from "../../src/sql-child/index.ts";

const LIMITS: SqlLimits = {
  rows: 1_000,
  bytes: 1024 ** 2,
  timeMs: 20_000,
  memoryBytes: 64 * 1024 ** 2,
  valueBytes: 1024 ** 2,
  sqlBytes: 65_536,
};

/** Options of {@link createRig}. */
export type RigOptions = Partial<Omit<SqlChildrenOptions, "limits">> & {
  limits?: Partial<SqlLimits>;
};

export interface Rig {
  readonly pool: SqlChildren;
  readonly outcomes: SqlOutcome[];
  readonly ask: (
    database: SqlDatabase,
    sql: string,
    more?: Partial<Omit<SqlQuestion, "database" | "sql">> & { signal?: AbortSignal },
  ) => Promise<SqlAnswer>;
}

/** Creates a pool that is closed after the test. */
export function createRig(t: TestContext, { limits, ...options }: RigOptions = {}): Rig {
  const outcomes: SqlOutcome[] = [];
  const pool = new SqlChildren({
    children: 1,
    onFinished: (outcome) => outcomes.push(outcome),
    ...options,
    limits: { ...LIMITS, ...limits },
  });
  t.after(() => pool.close());
  return {
    pool,
    outcomes,
    ask: (database, sql, { signal, ...more } = {}) =>
      pool.ask({ tenant: "a", ...more, sql }, () => ({ database }), signal),
  };
}
