// PostgreSQL by `pg`: a bounded pool with bounded waits, and the same JavaScript types as SQLite.
import pg from "pg";

/** Options of {@link createPostgresPool}. */
export interface PostgresOptions {
  /**
   * `postgres://user:password@host:port/database?sslmode=…`; the folder of a Unix socket is given by `?host=/folder`.
   */
  url: string;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Maximum number of connections. Default 10. */
  connectionsMax?: number;
  /** Maximum number of requests waiting for a connection; further ones fail with `busy`. Default 1 000. */
  waitingMax?: number;
  /** Maximum wait for a free or new connection, in ms. Default 5 000. */
  connectTimeoutMs?: number;
  /** Called when a connection breaks, idle or in use; the pool replaces it on demand. */
  onConnectionError?: (error: Error) => void;
}

const STATEMENT_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 30_000;
const IDLE_TRANSACTION_TIMEOUT_MS = 60_000;
const INT8_OID = 20;

/** Creates the pool without connecting. */
export function createPostgresPool(options: PostgresOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    // An unresponsive server does not enforce its own timeout.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
    types: { getTypeParser },
  });
  const onConnectionError = options.onConnectionError ?? (() => {});
  // The pool handles errors of its clients only while they are idle. An `error` event without a listener ends the
  // process, so clients in use need a listener too.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", onConnectionError));
  return pool;
}

// 64-bit integers become numbers, as on SQLite; integers beyond the exact range are an error.
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8_OID && format !== "binary") return parseInt8;
  return pg.types.getTypeParser(oid, format);
}

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`integer too large for a number: ${text}`);
  return value;
}
