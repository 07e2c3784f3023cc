// Statements of people on the databases of projects, their history, and saved queries.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import { cellSchema, inputCellsSchema, toCell } from "../data/cells.ts";
import type { DatabaseName, DataService } from "../data/data-service.ts";
import { listProjectQueries } from "../data/project-queries.ts";
import { listParameters } from "../data/statement.ts";
import { requireDataRight } from "./data-access.ts";
import { auditChange, nameActor, recordData } from "./data-audit.ts";
import { accessData, DATA_PROBLEMS, DATABASE_PATH, databaseParams } from "./data-routes.ts";

const SQL_CHARACTERS_MAX = 262_144;
const sql = z.string().min(1).max(SQL_CHARACTERS_MAX);
const parameters = inputCellsSchema.default({}).meta({ description: "values of `:name`, by name" });

const answerSchema = z.object({
  columns: z.array(z.object({ name: z.string(), type: z.string() })),
  rows: z.array(z.array(cellSchema)),
  truncated: z.boolean().meta({ description: "true if there are more than 1 000 rows or 8 MiB" }),
  elapsed_ms: z.number(),
  changes: z
    .object({
      rows: z.number(),
      others: z.number().nullable(),
      kept: z.boolean(),
    })
    .nullable()
    .meta({ description: "of a changing statement" }),
});

const querySchema = z.object({
  name: z.string(),
  sql: z.string(),
  source: z.enum(["project", "saved"]).meta({ description: "`project`: in its folder `queries`" }),
  parameters: z.array(z.string()),
});

export function createQueryRoutes(
  data: DataService,
  findFolder: (project: string) => string,
): ApiRoute[] {
  return [
    createRunRoute(data),
    defineRoute({
      ...accessData("query"),
      method: "POST",
      path: `${DATABASE_PATH}/plan`,
      summary: "The plan of a statement, which is not run",
      params: databaseParams,
      body: z.strictObject({ sql, parameters }),
      answer: z.object({
        lines: z.array(z.object({ depth: z.number(), text: z.string() })),
      }),
      problems: DATA_PROBLEMS,
      handle: async ({ params, body, signal }) => ({
        lines: await data.explain(params, { ...body, signal }),
      }),
    }),
    defineRoute({
      ...accessData("query"),
      method: "GET",
      path: `${DATABASE_PATH}/history`,
      summary: "The caller's latest 500 statements, newest first",
      params: databaseParams,
      answer: z.object({ items: z.array(z.object({ sql: z.string(), at: z.string() })) }),
      problems: DATA_PROBLEMS,
      handle: async ({ params, caller }) => {
        data.find(params);
        const store = await data.openStore();
        const rows = await store.listHistory(nameActor(caller), params.project, params.database);
        const items = rows.map(({ sql_text: text, at }) => ({
          sql: text,
          at: new Date(at).toISOString(),
        }));
        return { items };
      },
    }),
    ...createSavedRoutes(data, findFolder),
  ];
}

function createRunRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...accessData("query"),
    method: "POST",
    path: `${DATABASE_PATH}/query`,
    summary: "Run one statement",
    description:
      "A statement without `write` can only read. With it, it is one INSERT, UPDATE or DELETE in a transaction: without `expected` it is rolled back, and the answer has the number of rows; with it, it is kept if it changes exactly that number. It ends when the client disconnects.",
    params: databaseParams,
    body: z.strictObject({
      sql,
      parameters,
      write: z
        .strictObject({ expected: z.int().min(0).optional() })
        .optional()
        .meta({ description: "requires `data:edit` as well" }),
    }),
    answer: answerSchema,
    problems: DATA_PROBLEMS,
    handle: async ({ params, body, caller, signal }) => {
      if (body.write !== undefined) requireDataRight(caller, "edit", params.project);
      const text = data.describe(params, body.sql);
      await rememberStatement(data, nameActor(caller), params, body.sql);
      const run = () => data.run(params, { ...body, write: body.write, signal });
      const describe = (answer: RunAnswer) => ({
        rows: answer.changes?.rows ?? answer.rows.length,
      });
      if (body.write?.expected !== undefined) {
        const change = { action: "data.change", detail: { sql: text }, run, describe };
        return toAnswer(await auditChange(data, caller, params, change));
      }
      const action = "data.query";
      try {
        const answer = await run();
        const detail = { sql: text, ...describe(answer) };
        await recordData(data, caller, params, { action, detail });
        return toAnswer(answer);
      } catch (error) {
        const detail = { sql: text };
        await recordData(data, caller, params, { action, outcome: "failure", detail });
        throw error;
      }
    },
  });
}

type RunAnswer = Awaited<ReturnType<DataService["run"]>>;

function toAnswer({ columns, rows, isTruncated, elapsedMs, changes }: RunAnswer) {
  return {
    columns: columns.map((one) => ({ name: one.name, type: one.type ?? "" })),
    rows: rows.map((row) => row.map(toCell)),
    truncated: isTruncated,
    elapsed_ms: Math.round(elapsedMs * 10) / 10,
    changes:
      changes === undefined
        ? null
        : { rows: changes.rows, others: changes.others, kept: changes.isKept },
  };
}

function createSavedRoutes(data: DataService, findFolder: (project: string) => string): ApiRoute[] {
  const path = `${DATABASE_PATH}/queries`;
  return [
    defineRoute({
      ...accessData("query"),
      method: "GET",
      path,
      summary: "Saved queries, and those of the project's folder `queries`",
      params: databaseParams,
      answer: z.object({ items: z.array(querySchema) }),
      problems: DATA_PROBLEMS,
      handle: async ({ params }) => {
        const { dialect } = data.find(params);
        const store = await data.openStore();
        const saved = await store.listSaved(params.project, params.database);
        const describe = (name: string, text: string, source: "project" | "saved") => ({
          name,
          sql: text,
          source,
          parameters: listParameters(text, dialect),
        });
        return {
          items: [
            ...listProjectQueries(findFolder(params.project)).map((one) =>
              describe(one.name, one.sql, "project"),
            ),
            ...saved.map((one) => describe(one.name, one.sql_text, "saved")),
          ],
        };
      },
    }),
    ...createSavingRoutes(data, path),
  ];
}

function createSavingRoutes(data: DataService, path: string): ApiRoute[] {
  const named = databaseParams.extend({ name: z.string().min(1).max(200) });
  return [
    defineRoute({
      ...accessData("query"),
      method: "PUT",
      path: `${path}/{name}`,
      summary: "Save a query under a name",
      params: named,
      body: z.strictObject({ sql }),
      answer: NO_BODY,
      problems: DATA_PROBLEMS,
      handle: async ({ params: { project, database, name }, body, caller }) => {
        data.find({ project, database });
        const store = await data.openStore();
        const actor = nameActor(caller);
        await store.save({ project, db: database, name, sql_text: body.sql, actor });
      },
    }),
    defineRoute({
      ...accessData("query"),
      method: "DELETE",
      path: `${path}/{name}`,
      summary: "Forget a saved query",
      params: named,
      answer: NO_BODY,
      problems: DATA_PROBLEMS,
      handle: async ({ params: { project, database, name } }) => {
        const store = await data.openStore();
        if (await store.remove(project, database, name)) return;
        throw new PlatformError("not_found", `There is no saved query ${name}.`);
      },
    }),
  ];
}

async function rememberStatement(
  data: DataService,
  actor: string,
  { project, database }: DatabaseName,
  text: string,
): Promise<void> {
  const store = await data.openStore();
  await store.remember({ actor, project, db: database, sql_text: text });
}
