// One statement by PostgreSQL's extended protocol (https://www.postgresql.org/docs/current/protocol-flow.html), whose rows are
// fetched in pieces, and not beyond the limits of an answer.
import type pg from "pg";
import type { SqlAnswer, SqlLimits, SqlValue } from "./question.ts";
import { convertRow } from "./read-rows.ts";

/** Rows that are requested at once. */
const FETCH_ROWS = 200;
/** Types whose text is a number that JavaScript holds: int2, int4, oid. */
const SMALL_INTEGERS: ReadonlySet<number> = new Set([21, 23, 26]);
const INT8 = 20;
/** float4, float8 */
const FLOATS: ReadonlySet<number> = new Set([700, 701]);
const BYTEA = 17;

/** Options of {@link PostgresStatement}. */
export interface PostgresStatementOptions {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
  readonly limits: SqlLimits;
  readonly send: (rows: SqlAnswer["rows"]) => void;
}

/** The end of a statement. */
export interface PostgresOutcome {
  readonly columns: readonly { readonly name: string; readonly typeId: number }[];
  readonly isTruncated: boolean;
  /** Tag of the command, such as `UPDATE 3`. Empty if rows were left. */
  readonly tag: string;
}

/** The messages of the protocol that this statement sends; types of `pg` have only some of them. */
interface ProtocolConnection {
  parse(message: { text: string }): void;
  bind(message: { values: unknown[] }): void;
  describe(message: { type: "P" }): void;
  execute(message: { rows: number }): void;
  close(message: { type: "P" }): void;
  flush(): void;
  sync(): void;
}

/** A statement for `client.query()`. It handles the messages of the server while it runs. */
export class PostgresStatement implements pg.Submittable {
  readonly done: Promise<PostgresOutcome>;
  readonly #options: PostgresStatementOptions;
  readonly #resolve: (outcome: PostgresOutcome) => void;
  readonly #reject: (error: unknown) => void;
  #columns: { name: string; typeId: number }[] = [];
  #piece: SqlAnswer["rows"][number][] = [];
  #rows = 0;
  #bytes = 0;
  #isTruncated = false;
  #isEnding = false;
  #tag = "";
  #error: unknown;

  constructor(options: PostgresStatementOptions) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<PostgresOutcome>();
    this.done = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: pg.Connection): void {
    const protocol = connection as unknown as ProtocolConnection;
    const { sql, parameters } = this.#options;
    protocol.parse({ text: sql });
    protocol.bind({ values: parameters.map(formatParameter) });
    protocol.describe({ type: "P" });
    protocol.execute({ rows: FETCH_ROWS });
    protocol.flush();
  }

  handleRowDescription({
    fields,
  }: {
    fields: readonly { name: string; dataTypeID: number }[];
  }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, typeId: dataTypeID }));
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    if (this.#isTruncated) return;
    const { limits } = this.#options;
    const values = fields.map((text, index) => parseValue(text, this.#columns[index]!.typeId));
    const { row, rowBytes } = convertRow(values, limits.shownBytes);
    if (this.#rows === limits.rows || this.#bytes + rowBytes > limits.bytes) {
      this.#isTruncated = true;
      return;
    }
    this.#rows += 1;
    this.#bytes += rowBytes;
    this.#piece.push(row);
  }

  handlePortalSuspended(connection: pg.Connection): void {
    const protocol = connection as unknown as ProtocolConnection;
    this.#flush();
    if (this.#isTruncated) {
      this.#isEnding = true;
      protocol.close({ type: "P" });
      protocol.sync();
      return;
    }
    protocol.execute({ rows: FETCH_ROWS });
    protocol.flush();
  }

  handleCommandComplete({ text }: { text: string }, connection: pg.Connection): void {
    this.#tag = text;
    this.#end(connection);
  }

  handleEmptyQuery(connection: pg.Connection): void {
    this.#end(connection);
  }

  // `COPY … FROM STDIN` and `COPY … TO STDOUT` have a protocol of their own.
  handleCopyInResponse(connection: pg.Connection): void {
    (connection as unknown as { sendCopyFail(message: string): void }).sendCopyFail("refused");
  }

  handleCopyData(): void {
    this.#error ??= new Error("COPY is not available");
  }

  handleError(error: unknown, connection: pg.Connection): void {
    if (!this.#isEnding) this.#end(connection);
    // The client does not report that it is ready to a statement that has failed.
    this.#reject(this.#error ?? error);
  }

  handleReadyForQuery(): void {
    if (this.#error !== undefined) {
      this.#reject(this.#error);
      return;
    }
    this.#flush();
    const columns = this.#columns;
    this.#resolve({ columns, isTruncated: this.#isTruncated, tag: this.#tag });
  }

  #end(connection: pg.Connection): void {
    this.#isEnding = true;
    (connection as unknown as ProtocolConnection).sync();
  }

  #flush(): void {
    if (this.#piece.length === 0) return;
    this.#options.send(this.#piece);
    this.#piece = [];
  }
}

/** The text of a parameter; its type is that of the place where it stands. */
function formatParameter(value: SqlValue): string | null {
  if (value === null) return null;
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString("hex")}`;
  return String(value);
}

/** Numbers that JavaScript holds exactly, bytes, and the text of everything else. */
function parseValue(text: string | null, typeId: number): SqlValue {
  if (text === null) return null;
  if (SMALL_INTEGERS.has(typeId)) return Number(text);
  if (typeId === INT8) return BigInt(text);
  if (FLOATS.has(typeId)) return Number.isFinite(Number(text)) ? Number(text) : text;
  if (typeId === BYTEA && text.startsWith("\\x"))
    return new Uint8Array(Buffer.from(text.slice(2), "hex"));
  return text;
}
