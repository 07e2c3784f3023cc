// A question to PostgreSQL: one statement by the extended protocol, which refuses several, in a transaction of its own.
//
//   begin read only, select 1 ─► the statement ─► rollback ─► the connection is closed
//
// The query before the statement ends the time in which a transaction can be made a writing one. The rollback undoes what a
// reading transaction lets pass, such as large objects.
import pg from "pg";
import type { Ask } from "./messages.ts";
import { PostgresStatement } from "./postgres-statement.ts";
import type { SqlAnswer, SqlChanges } from "./question.ts";
import { SqlError } from "./sql-error.ts";
import { isBlank } from "./statement-text.ts";

const CONNECT_MS = 5_000;
/** A change waits so long for the locks of others. */
const LOCK_MS = 1_000;
/** A statement that is read at leisure leaves the other processors to the project. */
const ONE_PROCESS = "set local max_parallel_workers_per_gather = 0";
const APPLICATION_NAME = "platform console";
/** Tags of statements that change rows (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
const CHANGES = /^(?:INSERT 0|UPDATE|DELETE|MERGE) (\d+)$/;
/** Roles with which statements reach files and programs of the server. */
const FILE_ROLES = ["pg_read_server_files", "pg_write_server_files", "pg_execute_server_program"];

type Send = (rows: SqlAnswer["rows"]) => void;

/** Answers a question. Rejects with a {@link SqlError}. */
export async function answerPostgres(
  ask: Ask,
  url: string,
  send: Send,
): Promise<Omit<SqlAnswer, "rows" | "elapsedMs">> {
  requireText(ask);
  const client = new pg.Client({
    connectionString: url,
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: ask.limits.timeMs,
    lock_timeout: LOCK_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect().catch((error: unknown) => {
      throw new SqlError("failed", `The database does not answer: ${describe(error)}.`, {
        cause: error,
      });
    });
    await requirePlainRole(client);
    return await runInTransaction(client, ask, send);
  } catch (error) {
    throw explain(error, ask.sql);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function requireText({ sql }: Ask): void {
  if (sql.includes("\0")) throw new SqlError("invalid", "The statement contains a NUL character.");
  if (isBlank(sql)) throw new SqlError("invalid", "The statement is empty.");
}

// A statement of such a role is not bounded by what its transaction may do.
async function requirePlainRole(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string; reason: string | null }>(
    `select r.rolname as name, case when r.rolsuper then 'is a superuser' else (
       select 'has the role ' || f.rolname from pg_roles f
       where f.rolname = any ($1) and pg_has_role(r.oid, f.oid, 'member') limit 1) end as reason
     from pg_roles r where r.rolname in (session_user, current_user) order by 2 nulls last limit 1`,
    [FILE_ROLES],
  );
  const { name = "", reason = "is unknown" } = rows[0] ?? {};
  if (reason === null) return;
  throw new SqlError(
    "forbidden",
    `The role ${name} of this database ${reason}: statements could read files of the server and run programs on it. Give the project a role of its own without these rights.`,
  );
}

async function runInTransaction(
  client: pg.Client,
  { sql, parameters = [], limits, write }: Ask,
  send: Send,
): Promise<Omit<SqlAnswer, "rows" | "elapsedMs">> {
  if (!isList(parameters)) {
    throw new SqlError("invalid", "Parameters of PostgreSQL have numbers: $1, $2.");
  }
  const begin = write === undefined ? "begin read only" : "begin";
  await client.query(`${begin}; ${ONE_PROCESS}; select 1`);
  const statement = new PostgresStatement({ sql, parameters, limits, send });
  client.query(statement);
  const { columns, isTruncated, tag } = await statement.done;
  const types = await nameTypes(client, columns);
  const described = columns.map(({ name, typeId }) => ({ name, type: types.get(typeId) ?? "" }));
  if (write === undefined) {
    await client.query("rollback");
    return { columns: described, isTruncated };
  }
  const counted = CHANGES.exec(tag)?.[1];
  if (counted === undefined) {
    throw new SqlError("forbidden", "Only INSERT, UPDATE and DELETE are allowed.");
  }
  const rows = Number(counted);
  const isKept = write.expected !== undefined && rows === write.expected && !isTruncated;
  await client.query(isKept ? "commit" : "rollback");
  const changes: SqlChanges = { rows, others: null, isKept };
  return { columns: described, isTruncated, changes };
}

/** Names of types; none in a transaction that the statement has ended or broken. */
async function nameTypes(
  client: pg.Client,
  columns: readonly { typeId: number }[],
): Promise<Map<number, string>> {
  if (columns.length === 0) return new Map();
  const ids = [...new Set(columns.map(({ typeId }) => typeId))];
  const { rows } = await client.query<{ id: number; name: string }>(
    "select oid::int as id, format_type(oid, null) as name from pg_type where oid = any ($1)",
    [ids],
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

function explain(error: unknown, sql: string): unknown {
  if (error instanceof SqlError) return error;
  const code = (error as { code?: unknown } | undefined)?.code;
  const message = describe(error);
  if (typeof code !== "string") return new SqlError("failed", message, { cause: error });
  switch (code) {
    case "57014":
      return new SqlError("limit", "The statement has run for too long.", { limit: "time" });
    case "55P03":
      return new SqlError("busy", "Another transaction has locked the rows.");
    case "25006":
      return new SqlError("forbidden", "Only reading is allowed.");
    case "42501":
      return new SqlError("forbidden", `${message}.`);
    case "53200":
    case "54000":
    case "54001":
      return new SqlError("limit", `The statement is too complex: ${message}.`, {
        limit: "complexity",
      });
    default:
      // Classes of the client's faults: https://www.postgresql.org/docs/current/errcodes-appendix.html
      return new SqlError(/^(?:08|53|57|58|XX)/.test(code) ? "failed" : "invalid", message, {
        position: readPosition(error, sql),
      });
  }
}

/** The offset in UTF-16 units of the character that PostgreSQL counts from 1, of the statement and not of one inside it. */
function readPosition(error: unknown, sql: string): number | undefined {
  const place = Number((error as { position?: unknown }).position);
  if (!Number.isInteger(place) || place < 1) return undefined;
  let offset = 0;
  for (let before = 1; before < place && offset < sql.length; before += 1) {
    offset += sql.codePointAt(offset)! > 0xffff ? 2 : 1;
  }
  return offset;
}

function isList(parameters: NonNullable<Ask["parameters"]>): parameters is readonly never[] {
  return Array.isArray(parameters);
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
