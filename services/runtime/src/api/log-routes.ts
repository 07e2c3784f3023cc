// The combined log: pages, and the documentation of its stream.
import {
  cursorQuery,
  decodeCursor,
  encodeCursor,
  linePosition,
  nextCursor,
  createValidationError,
  defineRoute,
  defineUpgradeRoute,
  type ApiRoute,
} from "@platform/kernel/http";
import { LOG_LEVELS } from "@platform/kernel/log";
import { z } from "zod";
import { createLogFilter, type LogFilter } from "../control/log-line.ts";
import { readLogPage } from "../control/log-page.ts";
import { requireRead } from "./access.ts";

/** Path of the stream. */
export const LOG_STREAM_PATH = "/api/v1/logs/ws";

const lineSchema = z.object({
  id: z.string().meta({ description: "derived from the content; the stream uses the same ids" }),
  timestamp: z.string().meta({ description: "RFC 3339" }),
  level: z.string(),
  service: z.string().meta({ description: "short name; `platform` is the supervisor" }),
  msg: z.string(),
  trace_id: z.string().meta({ description: "empty without a trace" }),
  fields: z.record(z.string(), z.unknown()).meta({ description: "all other fields" }),
});

const filterQuery = z.object({
  service: z
    .string()
    .max(64)
    .optional()
    .describe("Short name or product name of a service, or `platform`."),
  level: z.enum(LOG_LEVELS).exclude(["off"]).default("debug").describe("Minimum severity."),
  q: z.string().max(256).optional().describe("Text in the message or a field, in any case."),
});
const pageQuery = filterQuery.extend({
  limit: z.coerce.number().int().min(1).max(500).default(100).describe("Number of lines."),
  cursor: cursorQuery,
});

/** Options of {@link createLogRoutes}. */
export interface LogRoutesOptions {
  /** Path of the log. */
  path: string;
  /** Names of a service by short name or product name. */
  findService: (word: string) => { name: string; label: string };
}

export function createLogRoutes({ path, findService }: LogRoutesOptions): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/logs",
      tag: "Logs",
      summary: "Lines of all services, newest first",
      description:
        "One request searches 8 MiB: a page can have fewer lines than `limit`, even none, and a `next_cursor`.",
      access: requireRead,
      query: pageQuery,
      answer: z.object({ items: z.array(lineSchema), next_cursor: nextCursor }),
      handle: async ({ query }) => {
        const accepts = createLogFilter(toFilter(query, findService));
        const before =
          query.cursor === undefined ? undefined : decodeCursor(query.cursor, linePosition);
        const { lines, next } = await readLogPage({ path, before, limit: query.limit, accepts });
        return { items: lines, next_cursor: next === undefined ? null : encodeCursor(next) };
      },
    }),
    defineUpgradeRoute({
      path: LOG_STREAM_PATH,
      tag: "Logs",
      summary: "New lines as they are written (WebSocket)",
      description:
        'JSON messages `{"type":"lines","items":[…],"missed":0}`, at most ten per second, oldest line first; the first one has no lines. `missed` counts lines that were left out because the client did not read fast enough. It closes with 4401 when the credentials have expired, and with 1001 when the platform stops.',
      access: requireRead,
      query: filterQuery,
      problems: { 503: "Too many streams are open" },
    }),
  ];
}

/** Reads the filter of a stream. Throws 400 if a parameter is invalid. */
export function readStreamFilter(
  search: URLSearchParams,
  findService: LogRoutesOptions["findService"],
): LogFilter {
  const { data, error } = filterQuery.safeParse(Object.fromEntries(search));
  if (data !== undefined) return toFilter(data, findService);
  throw createValidationError(
    error.issues.map(({ path, message }) => ({ in: "query", path: path.join("."), message })),
  );
}

function toFilter(
  { service, level, q }: z.output<typeof filterQuery>,
  findService: LogRoutesOptions["findService"],
): LogFilter {
  return {
    service: service === undefined ? undefined : findService(service),
    level,
    text: q,
  };
}
