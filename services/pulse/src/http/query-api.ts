// SQL over the broker's metadata.
import type { SqlAnswer } from "@platform/kernel/sql-child";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import { SQL_BYTES_MAX, type MetadataQueries } from "../query/metadata-queries.ts";
import { type Admission, isForAllTenants, isOperator, tenantOf } from "./admission.ts";

const PARAMETERS_MAX = 100;
const BODY_BYTES_MAX = 4 * SQL_BYTES_MAX;

const value = z.union([z.string(), z.number(), z.null()]);
const parameters = z.union([
  z.array(value).max(PARAMETERS_MAX),
  z
    .record(z.string().min(1).max(255), value)
    .refine((values) => Object.keys(values).length <= PARAMETERS_MAX, `at most ${PARAMETERS_MAX}`),
]);

/** The route that answers queries. */
export function createQueryRoute(
  queries: Pick<MetadataQueries, "run">,
  admission: Admission,
): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/sqlite/query",
    summary: "Ask for metadata by SQL: one SELECT in SQLite's dialect",
    description:
      "Tables: `topics`, `partitions`, `groups`, `offsets`, `subscriptions`, `dlq` (causes of the newest 10 000 letters), `schemas`, " +
      "`transforms`, `rules`, `stats`; their rows are what the caller may see, connections and rules are for operators. An operator " +
      "asks for all tenants with `?tenant=*`: then tables have a column `tenant`. At most 1 000 rows, 4 MiB and 2 s; one query runs " +
      "at a time, and four wait.",
    tag: "Read",
    access: admission.anyRight,
    bodyBytesMax: BODY_BYTES_MAX,
    body: z.strictObject({
      sql: z.string().min(1),
      params: parameters.default([]).describe("Values of `?`, or by name of `:name`."),
    }),
    problems: {
      422: "The statement exceeds a limit, which is in `limit`.",
      429: "Other queries wait.",
      501: "The broker runs on Bun, whose SQLite has no authorizer.",
    },
    answer: z.object({
      columns: z.array(z.object({ name: z.string() })),
      rows: z.array(z.array(value)).describe("Integers beyond 2^53 are text, blobs base64."),
      truncated: z.boolean(),
      elapsed_ms: z.int(),
    }),
    handle: async ({ body, caller, signal }) => {
      const answer = await queries.run(
        body,
        {
          tenant: isForAllTenants(caller) ? undefined : tenantOf(caller),
          rights: admission.rightsOf(caller),
          isOperator: isOperator(caller),
        },
        signal,
      );
      return {
        columns: [...answer.columns],
        rows: answer.rows.map((row) => row.map(toJson)),
        truncated: answer.isTruncated,
        elapsed_ms: Math.ceil(answer.elapsedMs),
      };
    },
  });
}

function toJson(cell: SqlAnswer["rows"][number][number]): string | number | null {
  if (cell === null || typeof cell === "string") return cell;
  // JSON has no infinity.
  if (typeof cell === "number") return Number.isFinite(cell) ? cell : String(cell);
  if (typeof cell === "bigint") return cell.toString();
  return cell instanceof Uint8Array ? Buffer.from(cell).toString("base64") : null;
}
