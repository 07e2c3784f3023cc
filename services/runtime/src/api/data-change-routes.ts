// Changes of rows. Each is one statement, which fails if the row has changed since its author has seen it.
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import { cellSchema, inputCellsSchema } from "../data/cells.ts";
import type { ChangeReport, DataService } from "../data/data-service.ts";
import { auditChange } from "./data-audit.ts";
import { accessData, DATA_PROBLEMS, DATABASE_PATH, databaseParams } from "./data-routes.ts";

const PATH = `${DATABASE_PATH}/tables/{table}/rows`;
const params = databaseParams.extend({ table: z.string().min(1).max(1_024) });

const changeSchema = z.object({
  rows: z.number(),
  others: z.number().nullable().meta({
    description:
      "rows that triggers and foreign keys have changed with it; null from PostgreSQL, which does not tell",
  }),
  kept: z.boolean().meta({ description: "false for a trial" }),
  key: z
    .record(z.string(), cellSchema)
    .nullable()
    .meta({ description: "of the row, after the change; null of a deleted one" }),
});
const before = inputCellsSchema
  .default({})
  .meta({ description: "values that were shown whole: the row is changed only if it has them" });
const PROBLEMS = {
  ...DATA_PROBLEMS,
  409: "The row was changed or deleted meanwhile (`present` has its values), or rows of the table cannot be changed",
};

export function createDataChangeRoutes(data: DataService): ApiRoute[] {
  return [createInsertRoute(data), createUpdateRoute(data), createDeleteRoute(data)];
}

const access = accessData("edit");

function createInsertRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...access,
    method: "POST",
    path: PATH,
    summary: "Insert a row; columns without a value get their default",
    params,
    body: z.strictObject({ values: inputCellsSchema }),
    status: 201,
    answer: changeSchema,
    problems: PROBLEMS,
    handle: async ({ params: name, body: { values }, caller }) => {
      const report = await auditChange(data, caller, name, {
        action: "data.insert",
        detail: data.describeValues(name.table, values),
        run: () => data.insert(name, values),
        describe: ({ key, rows }) => ({ key, rows }),
      });
      return toDocument(report);
    },
  });
}

function createUpdateRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...access,
    method: "PATCH",
    path: PATH,
    summary: "Change values of a row, unless it has changed meanwhile",
    description: "The code of the project does not run, but triggers of the database do.",
    params,
    body: z.strictObject({ key: inputCellsSchema, before, set: inputCellsSchema }),
    answer: changeSchema,
    problems: PROBLEMS,
    handle: async ({ params: name, body, caller }) => {
      const report = await auditChange(data, caller, name, {
        action: "data.update",
        detail: { ...data.describeValues(name.table, body.set), key: body.key },
        run: () => data.update(name, body),
        describe: ({ rows, others }) => ({ rows, others }),
      });
      return toDocument(report);
    },
  });
}

function createDeleteRoute(data: DataService): ApiRoute {
  return defineRoute({
    ...access,
    method: "DELETE",
    path: PATH,
    summary: "Delete a row, unless it has changed meanwhile",
    params,
    query: z.object({
      trial: z
        .enum(["true", "false"])
        .default("false")
        .describe("`true`: nothing is deleted; the answer says how many rows would be."),
    }),
    body: z.strictObject({ key: inputCellsSchema, before }),
    answer: changeSchema,
    problems: PROBLEMS,
    handle: async ({ params: name, body, query: { trial }, caller }) => {
      if (trial === "true") return toDocument(await data.delete(name, body, true));
      const report = await auditChange(data, caller, name, {
        action: "data.delete",
        detail: { table: name.table, key: body.key },
        run: () => data.delete(name, body, false),
        describe: ({ rows, others }) => ({ rows, others }),
      });
      return toDocument(report);
    },
  });
}

function toDocument({ rows, others, isKept, key }: ChangeReport) {
  return { rows, others, kept: isKept, key };
}
