// SELECTs over the broker's metadata, each on a copy of what its caller may see, in a child process.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import { SqlChildren, SqlError, type SqlAnswer, type SqlOutcome } from "@platform/kernel/sql-child";
import { createMetadataTables, type MetadataSources, type Viewer } from "./metadata-tables.ts";

const MIB = 1024 * 1024;
/** Limit of a statement, in UTF-8. */
export const SQL_BYTES_MAX = 64 * 1024;
const LIMITS = {
  rows: 1_000,
  bytes: 4 * MIB,
  timeMs: 2_000,
  memoryBytes: 128 * MIB,
  valueBytes: MIB,
  sqlBytes: SQL_BYTES_MAX,
};
/** Queries that wait for the one that runs. */
const WAITING_MAX = 4;
const WAIT_MS = 10_000;
const RETRY_AFTER_S = 2;

/** A statement with its values. */
export interface MetadataQuery {
  readonly sql: string;
  readonly params: readonly Value[] | Readonly<Record<string, Value>>;
}

/** A value of a parameter. */
type Value = string | number | null;

/** Runs one query at a time. */
export class MetadataQueries {
  readonly #sources: MetadataSources;
  readonly #children: SqlChildren;

  constructor(sources: MetadataSources, onFinished: (outcome: SqlOutcome) => void) {
    this.#sources = sources;
    this.#children = new SqlChildren({
      children: 1,
      limits: LIMITS,
      waitingMax: WAITING_MAX,
      waitMs: WAIT_MS,
      onFinished,
    });
  }

  /**
   * Rejects with `validation_failed` for a statement that is wrong or not allowed, `unprocessable` at a limit,
   * `too_many_requests` while others wait, and the reason of `signal`.
   */
  async run(
    { sql, params }: MetadataQuery,
    viewer: Viewer,
    signal: AbortSignal,
  ): Promise<SqlAnswer> {
    if (process.versions["bun"] !== undefined) {
      throw new PlatformError("not_implemented", "Queries over metadata need the runtime Node.");
    }
    const tables = createMetadataTables(this.#sources, viewer);
    try {
      return await this.#children.ask(
        { tenant: viewer.tenant ?? "*", sql, parameters: params },
        () => ({ database: { kind: "tables", tables } }),
        signal,
      );
    } catch (error) {
      throw error instanceof SqlError ? toPlatformError(error) : error;
    }
  }

  /** Ends all queries. */
  close(): Promise<void> {
    return this.#children.close();
  }
}

function toPlatformError(error: SqlError): PlatformError {
  const { kind, message, limit } = error;
  switch (kind) {
    case "invalid":
    case "forbidden":
      return createValidationError([{ in: "body", path: "sql", message }]);
    case "limit":
      return new PlatformError("unprocessable", message, { fields: { limit } });
    case "busy":
      return createRetryLaterError("too_many_requests", message, RETRY_AFTER_S);
    case "damaged":
    case "failed":
      return new PlatformError("internal", "The query failed.", { cause: error });
    default:
      return kind satisfies never;
  }
}
