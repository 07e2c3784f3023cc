// GET /api/v1/admin/access-log: the latest requests of all workers, read from the access log.
import {
  formatLineCursor,
  LINE_CURSOR,
  parseLineCursor,
  readLinePage,
} from "@platform/kernel/files";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import * as z from "zod";
import type { Controller } from "../control/controller.ts";

/** Longest texts of an answer: a page is at most some 400 KiB. */
const TEXT_CHARACTERS_MAX = 1_024;

const text = z.string().transform((value) => value.slice(0, TEXT_CHARACTERS_MAX));

const requestSchema = z.object({
  timestamp: z.string().meta({ description: "start of the request, ISO 8601 in UTC" }),
  method: text,
  path: text.meta({ description: "normalized, without the query; cut after 1 024 characters" }),
  status: z.int(),
  latency_ms: z.number(),
  client_ip: z.string(),
  upstream: text.meta({ description: "URL of the target; empty if it was not forwarded" }),
  code: z.string().meta({ description: "code of an error of the gateway itself; else empty" }),
  route: z.string(),
  request_id: text,
  trace_id: z.string(),
  attempts: z.int(),
  upstream_ms: z
    .number()
    .nullable()
    .meta({ description: "time to the head of the upstream's response" }),
});

type LoggedRequest = z.output<typeof requestSchema>;

const query = z.object({
  route: z.string().max(1_024).optional().describe("Host and prefix of a route."),
  status: z
    .string()
    .regex(/^[1-5](\d\d|xx)$/, "a status such as 404, or a class such as 5xx")
    .optional()
    .describe("A status such as 404, or a class such as `5xx`."),
  q: z
    .string()
    .max(256)
    .optional()
    .describe("Text in the path, target, client address, code, request ID or trace ID."),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("Number of requests."),
  cursor: z.string().regex(LINE_CURSOR).optional().describe("`next_cursor` of the previous page."),
});

/** Creates the endpoint. */
export function createAccessLogRoutes(controller: Controller): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/admin/access-log",
      tag: "Operation",
      summary: "The latest requests of routes with an access log, newest first",
      description:
        "Requests are listed within 200 ms after their end, across all workers and rotated files. One call searches 8 MiB: a page can have fewer requests than `limit`, even none, and a `next_cursor`.",
      query,
      answer: z.object({
        items: z.array(requestSchema),
        next_cursor: z.string().nullable(),
        enabled: z.boolean().meta({ description: "false if no route has `access_log`" }),
      }),
      answerType: "application/json",
      handle: async ({ query: wanted }) => {
        const { accessLog } = controller.state.globals;
        if (accessLog === undefined) return { items: [], next_cursor: null, enabled: false };
        const accepts = createFilter(wanted);
        const { lines, next } = await readLinePage({
          path: accessLog.path,
          rotatedFiles: Math.max(1, accessLog.filesMax),
          before: wanted.cursor === undefined ? undefined : parseLineCursor(wanted.cursor),
          limit: wanted.limit,
          parse: (line) => {
            const request = parseRequest(line);
            return request !== undefined && accepts(request) ? request : undefined;
          },
        });
        const next_cursor = next === undefined ? null : formatLineCursor(next);
        return { items: lines, next_cursor, enabled: true };
      },
    }),
  ];
}

// A line can be torn when a disk was full, and the file may contain other lines.
function parseRequest(line: string): LoggedRequest | undefined {
  try {
    return requestSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function createFilter({
  route,
  status,
  q = "",
}: Pick<z.output<typeof query>, "route" | "status" | "q">): (request: LoggedRequest) => boolean {
  const [low, high] =
    status === undefined
      ? [0, Infinity]
      : [Number(status.replace("xx", "00")), Number(status.replace("xx", "99"))];
  return (request) => {
    if (route !== undefined && request.route !== route) return false;
    if (request.status < low || request.status > high) return false;
    const { path, upstream, client_ip, code, request_id, trace_id } = request;
    return [path, upstream, client_ip, code, request_id, trace_id].some((one) => one.includes(q));
  };
}
