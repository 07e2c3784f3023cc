// Messages between the service and the child that answers a question.
import type {
  SqlAnswer,
  SqlDatabase,
  SqlLimits,
  SqlQuestion,
  SqlTable,
  SqlValue,
} from "./question.ts";
import type { SqlErrorKind, SqlLimitName } from "./sql-error.ts";

/** Ends a child with too much memory; nothing else sends it. */
export const MEMORY_SIGNAL = "SIGTERM";

/** A table without its rows. */
type TableOutline = Pick<SqlTable, "name" | "columns">;

/** A database as the child receives it. */
export type DatabaseOutline =
  | Exclude<SqlDatabase, { kind: "tables" }>
  | { readonly kind: "tables"; readonly tables: readonly TableOutline[] };

/** A question as the child receives it. */
export interface Ask {
  readonly type: "ask";
  readonly sql: string;
  readonly parameters: SqlQuestion["parameters"];
  readonly database: DatabaseOutline;
  readonly write: SqlQuestion["write"];
  readonly limits: SqlLimits;
}

/** To the child: a question, and the rows of a table that it has requested. `undefined` follows after the last rows. */
export type ChildRequest =
  | Ask
  | { readonly type: "rows"; readonly rows: readonly (readonly SqlValue[])[] | undefined };

/** From the child: `begun` when the time of the question begins; `isSpent` if it keeps so much memory, or has so low a priority, that it should end. `next` requests rows of the table that was named last. */
export type ChildResponse =
  | { readonly type: "begun" }
  | { readonly type: "fill"; readonly table: string }
  | { readonly type: "next" }
  | { readonly type: "rows"; readonly rows: SqlAnswer["rows"] }
  | ({ readonly type: "done"; readonly isSpent: boolean } & Omit<SqlAnswer, "rows">)
  | {
      readonly type: "failed";
      readonly isSpent: boolean;
      readonly kind: SqlErrorKind;
      readonly message: string;
      readonly limit: SqlLimitName | undefined;
      readonly position: number | undefined;
    };
