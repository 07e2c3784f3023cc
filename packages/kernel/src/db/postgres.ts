// PostgreSQL through `pg`: a bounded pool with bounded waits, and types that read as SQLite's do.
import pg from "pg";

/** How the pool is bounded. */
export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=…`; a socket folder goes into `?host=/folder`. */
  url: string;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Connections. Default 10. */
  connectionsMax?: number;
  /** Requests that may wait for a connection; one more fails as `busy`. Default 1 000. */
  waitingMax?: number;
  /** Wait for a connection, free or new, in ms. Default 5 000. */
  connectTimeoutMs?: number;
  /** Time one statement may take, in ms. Default 30 000. */
  statementTimeoutMs?: number;
  /** Called when a connection breaks, idle or in use; the pool opens another when it needs one. */
  onConnectionError?: (error: Error) => void;
}

const IDLE_TIMEOUT_MS = 30_000;
const IDLE_TRANSACTION_TIMEOUT_MS = 60_000;
const INT8_OID = 20;

/** Makes the pool; nothing is connected yet. */
export function createPostgresPool(options: PostgresOptions): pg.Pool {
  const statementTimeoutMs = options.statementTimeoutMs ?? 30_000;
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    // A server that has gone silent does not keep its own timeout.
    query_timeout: statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    types: { getTypeParser },
  });
  const onConnectionError = options.onConnectionError ?? (() => {});
  // The pool listens to its clients only while they are idle and reports what it hears as its own `error`. An `error`
  // event without a listener ends the process, so a client that breaks while it is in use needs one of its own.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", onConnectionError));
  return pool;
}

// 64-bit integers are numbers, as SQLite gives them; one that a number cannot hold is an error, not another number.
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8_OID && format !== "binary") return parseInt8;
  return pg.types.getTypeParser(oid, format);
}

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`integer too large for a number: ${text}`);
  return value;
}
