// Tables and rows of the projects' databases.
import type { ServerResponse } from "node:http";
import { once } from "node:events";
import { PlatformError } from "@platform/kernel/errors";
import {
  alreadyAnswered,
  bytes,
  createValidationError,
  cursorQuery,
  decodeCursor,
  defineRoute,
  encodeCursor,
  nextCursor,
  type ApiRoute,
} from "@platform/kernel/http";
import { z } from "zod";
import { tableSchema, type DataTable } from "../data/table.ts";
import { cellSchema, inputCellsSchema, type InputCell } from "../data/cells.ts";
import type { DataService, TableName } from "../data/data-service.ts";
import { EXPORT_FORMATS, formatExport } from "../data/export.ts";
import { conditionSchema, positionSchema, type Condition } from "../data/row-query.ts";
import { needDataRight, requireDataRight, type DataRight } from "./data-access.ts";
import { recordData } from "./data-audit.ts";

/** Path of a project's databases. */
const DATABASES_PATH = "/api/v1/projects/{project}/databases";
/** Path of a database. */
export const DATABASE_PATH = `${DATABASES_PATH}/{database}`;
const TABLE_PATH = `${DATABASE_PATH}/tables/{table}`;
/** Tag of the operations. */
export const DATA_TAG = "Data of projects";

const LIMIT_MAX = 1_000;
const FILTER_CHARACTERS_MAX = 16_384;
const FILTER_MAX = 20;
const EXPORT_PAGE = 500;

const name = z.string().min(1).max(1_024);
const projectParams = z.object({ project: name });
/** Parameters of a database's path. */
export const databaseParams = z.object({ project: name, database: name });
const tableParams = databaseParams.extend({ table: name });

/** Problems of operations on data. */
export const DATA_PROBLEMS = {
  404: "There is no such project, database or table",
  422: "The database refuses it; `reason` is `invalid`, `forbidden`, `limit`, or `schema` with the file of a `migration`; `position` is the offset of a fault in the statement, `columns` are those without an index that make a page take too long",
  503: "Too many questions wait, or the database does not answer",
};

const rowSchema = z
  .object({
    key: z.record(z.string(), cellSchema).nullable(),
    values: z.array(cellSchema).meta({ description: "in the order of the table's columns" }),
  })
  .meta({ id: "DataRow" });

const databaseSchema = z.object({
  name: z.string(),
  kind: z.enum(["sqlite", "postgres"]),
  bytes: z.number().nullable(),
  migrations: z.object({
    applied: z.array(z.string()),
    waiting: z.array(z.string()).nullable().meta({
      description:
        "null if it is not known which migrations the database has: the project has several, or no folder `migrations`",
    }),
  }),
});

/** Requires a right to the project of a path. */
function authorizeData(right: DataRight): NonNullable<ApiRoute["authorize"]> {
  return async ({ caller, params }) => {
    requireDataRight(caller, right, params["project"] ?? "");
  };
}

/** The access of an operation: a right to any project, and then to that of the path. */
export function accessData(
  right: DataRight,
): Required<Pick<ApiRoute, "access" | "authorize" | "tag">> {
  return { access: needDataRight(right), authorize: authorizeData(right), tag: DATA_TAG };
}

export function createDataRoutes(data: DataService): ApiRoute[] {
  return [
    defineRoute({
      ...accessData("read"),
      method: "GET",
      path: DATABASES_PATH,
      summary: "Databases of a project",
      params: projectParams,
      answer: z.object({
        mode: z.enum(["read", "edit"]).meta({ description: "allowed use, by `console_data`" }),
        items: z.array(databaseSchema),
      }),
      problems: DATA_PROBLEMS,
      handle: async ({ params: { project } }) => {
        const found = await data.listDatabases(project);
        const items = found.map(({ database, bytes: size, applied, waiting }) => ({
          name: database.name,
          kind: database.dialect,
          bytes: size ?? null,
          migrations: { applied, waiting: waiting ?? null },
        }));
        return { mode: data.mode === "edit" ? ("edit" as const) : ("read" as const), items };
      },
    }),
    defineRoute({
      ...accessData("read"),
      method: "GET",
      path: `${DATABASE_PATH}/tables`,
      summary: "Tables of a database, with columns, keys, references and indexes",
      description:
        "Rows are counted up to 1 000; the number of a larger table is the estimate of the database, if it has one.",
      params: databaseParams,
      answer: z.object({ items: z.array(tableSchema) }),
      problems: DATA_PROBLEMS,
      handle: async ({ params }) => ({ items: await data.listTables(params) }),
    }),
    createRowsRoute(data),
    createRowRoute(data),
    createExportRoute(data),
    createValueRoute(data),
  ];
}

function createRowsRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...accessData("read"),
    method: "GET",
    path: `${TABLE_PATH}/rows`,
    summary: "Rows of a table, a page at a time",
    description:
      "Pages follow the key of the table, so that rows are neither repeated nor left out; rows of views have no key, and one page. Values of more than 64 KiB are cut.",
    params: tableParams,
    query: z.object({
      filter: z
        .string()
        .max(FILTER_CHARACTERS_MAX)
        .optional()
        .describe(
          'Conditions as JSON: `[{"column":"email","op":"eq","value":"a@example.com"}]`; `op` is eq, ne, lt, le, gt, ge, contains, starts, null or set.',
        ),
      sort: z.string().max(1_025).optional().describe("Column; with `-` in front descending."),
      limit: z.coerce.number().int().min(1).max(LIMIT_MAX).default(100).describe("Number of rows."),
      cursor: cursorQuery,
    }),
    answer: z.object({
      items: z.array(rowSchema),
      next_cursor: nextCursor,
      truncated: z
        .boolean()
        .meta({ description: "true if the page ends early, because its values are large" }),
    }),
    problems: DATA_PROBLEMS,
    handle: async ({ params, query: { filter, sort, limit, cursor } }) => {
      const page = await data.readRows(params, {
        filter: readFilter(filter),
        sort: readSort(sort),
        after: cursor === undefined ? undefined : decodeCursor(cursor, positionSchema),
        limit,
      });
      return {
        items: page.items,
        next_cursor: page.next === undefined ? null : encodeCursor(page.next),
        truncated: page.isTruncated,
      };
    },
  });
}

function createRowRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...accessData("read"),
    method: "GET",
    path: `${TABLE_PATH}/row`,
    summary: "The row with a key",
    params: tableParams,
    query: z.object({ key: z.string().max(FILTER_CHARACTERS_MAX).describe("Values as JSON.") }),
    answer: rowSchema,
    problems: DATA_PROBLEMS,
    handle: async ({ params, query: { key } }) => {
      const row = await data.readRow(params, readKey(key));
      if (row === undefined) throw new PlatformError("not_found", "There is no such row.");
      return row;
    },
  });
}

function createExportRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...accessData("read"),
    method: "GET",
    path: `${TABLE_PATH}/export`,
    summary: "All rows of a table as CSV, JSON or SQL, without hidden columns",
    description:
      "Texts of CSV that a spreadsheet would run as a formula begin with an apostrophe. Long values are whole up to 256 KiB and left out beyond.",
    params: tableParams,
    query: z.object({
      format: z.enum(EXPORT_FORMATS).default("csv"),
      filter: z.string().max(FILTER_CHARACTERS_MAX).optional().describe("As of the rows."),
    }),
    answer: bytes("application/octet-stream"),
    problems: DATA_PROBLEMS,
    handle: async ({ params, query: { format, filter }, caller, rawResponse: response }) => {
      if (response === undefined) throw new PlatformError("internal", "There is no connection.");
      const table = await data.readTable(params);
      const conditions = readFilter(filter);
      await recordData(data, caller, params, {
        action: "data.export",
        detail: { table: table.name, format },
      });
      await sendExport(data, response, { params, table, format, conditions });
      return alreadyAnswered();
    },
  });
}

async function sendExport(
  data: DataService,
  response: ServerResponse,
  wanted: {
    params: TableName;
    table: DataTable;
    format: (typeof EXPORT_FORMATS)[number];
    conditions: readonly Condition[];
  },
): Promise<void> {
  const { params, table, format, conditions } = wanted;
  const { dialect } = data.find(params);
  const writer = formatExport(format, table, dialect);
  let after: Awaited<ReturnType<DataService["readRows"]>>["next"];
  // An error of the first page is an answer; a later one ends the connection.
  let page = await data.readRows(params, {
    filter: conditions,
    sort: undefined,
    after,
    limit: EXPORT_PAGE,
  });
  const file = encodeURIComponent(`${table.name}.${format}`);
  response.writeHead(200, {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": `attachment; filename*=UTF-8''${file}`,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  try {
    await write(response, writer.head);
    for (;;) {
      await write(response, page.items.map((row) => writer.formatRow(row.values)).join(""));
      after = page.next;
      if (after === undefined || response.destroyed) break;
      page = await data.readRows(params, {
        filter: conditions,
        sort: undefined,
        after,
        limit: EXPORT_PAGE,
      });
    }
    response.end(writer.end());
  } catch {
    response.destroy();
  }
}

async function write(response: ServerResponse, text: string): Promise<void> {
  if (text === "" || response.destroyed || response.write(text)) return;
  await Promise.race([once(response, "drain"), once(response, "close")]);
}

function createValueRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...accessData("read"),
    method: "POST",
    path: `${TABLE_PATH}/value`,
    summary: "A whole value; of a hidden column with an audit entry",
    params: tableParams,
    body: z.strictObject({ key: inputCellsSchema, column: name }),
    answer: bytes("application/octet-stream"),
    problems: { ...DATA_PROBLEMS, 413: "The value has more than 32 MiB" },
    handle: async ({ params, body: { key, column }, caller, answerHeaders }) => {
      const table = await data.readTable(params);
      if (table.columns.some((one) => one.name === column && one.hidden)) {
        await recordData(data, caller, params, {
          action: "data.reveal",
          detail: { table: table.name, column, key },
        });
      }
      const value = await data.readValue(params, key, column);
      answerHeaders.set("content-type", "application/octet-stream");
      answerHeaders.set("x-content-type-options", "nosniff");
      if (value instanceof Uint8Array) return new Uint8Array(value);
      return Buffer.from(value === null ? "" : String(value));
    },
  });
}

/** Reads conditions. Throws 400 if they are not of their form. */
function readFilter(text: string | undefined): Condition[] {
  if (text === undefined) return [];
  return readJson(text, "filter", z.array(conditionSchema).max(FILTER_MAX));
}

function readKey(text: string): Record<string, InputCell> {
  return readJson(text, "key", inputCellsSchema);
}

function readJson<T>(text: string, path: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw createValidationError([{ in: "query", path, message: "not JSON" }]);
  }
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  throw createValidationError([{ in: "query", path, message: z.prettifyError(error) }]);
}

function readSort(text: string | undefined) {
  if (text === undefined || text === "") return undefined;
  const isDescending = text.startsWith("-");
  return { column: isDescending ? text.slice(1) : text, isDescending };
}
