// /api/v1/admin/access-log: the latest requests of all workers, read from the access log, and those that follow.
import { LineStreams, type LineStreamsOptions } from "@platform/kernel/feeds";
import { LineFollower, readLinePage } from "@platform/kernel/files";
import {
  cursorQuery,
  decodeCursor,
  encodeCursor,
  linePosition,
  nextCursor,
  type ApiRoute,
  createValidationError,
  defineRoute,
  defineUpgradeRoute,
} from "@platform/kernel/http";
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import type { Controller } from "../control/controller.ts";
import { requireRead } from "./request.ts";

const PATH = "/api/v1/admin/access-log";
const STREAM_PATH = `${PATH}/ws`;
const SAMPLE_MAX = 100_000;

/** Longest texts of an answer: a page is at most some 400 KiB. */
const TEXT_CHARACTERS_MAX = 1_024;

const text = z.string().overwrite((value) => value.slice(0, TEXT_CHARACTERS_MAX));

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
  stream: z
    .boolean()
    .default(false)
    .meta({ description: "an event stream or upgraded connection, open for `latency_ms`" }),
});

type LoggedRequest = z.output<typeof requestSchema>;

const filterQuery = z.object({
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
});

type RequestFilter = z.output<typeof filterQuery>;

const pageQuery = filterQuery.extend({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe("Number of requests."),
  cursor: cursorQuery,
});

const streamQuery = filterQuery.extend({
  sample: z.coerce
    .number()
    .int()
    .min(1)
    .max(SAMPLE_MAX)
    .default(1)
    .describe("One of so many matching requests is sent: 100 is 1 %."),
});

export function createAccessLogRoutes(controller: Controller): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      tag: "Operation",
      summary: "The latest requests of routes with an access log, newest first",
      description:
        "Requests are listed within 200 ms after their end, across all workers and rotated files. One call searches 8 MiB: a page can have fewer requests than `limit`, even none, and a `next_cursor`.",
      query: pageQuery,
      answer: z.object({
        items: z.array(requestSchema),
        next_cursor: nextCursor,
        enabled: z.boolean().meta({ description: "false if no route has `access_log`" }),
      }),
      problems: { 503: "The access log cannot be read" },
      handle: async ({ query: wanted }) => {
        const { accessLog } = controller.state.globals;
        if (accessLog === undefined) return { items: [], next_cursor: null, enabled: false };
        const accepts = createFilter(wanted);
        const page = readLinePage({
          path: accessLog.path,
          rotatedFiles: Math.max(1, accessLog.filesMax),
          before:
            wanted.cursor === undefined ? undefined : decodeCursor(wanted.cursor, linePosition),
          limit: wanted.limit,
          parse: (line) => {
            const request = parseRequest(line);
            return request !== undefined && accepts(request) ? request : undefined;
          },
        });
        const { lines, next } = await page.catch((cause: unknown) => {
          throw new PlatformError("unavailable", describeReadError(cause), { cause });
        });
        const next_cursor = next === undefined ? null : encodeCursor(next);
        return { items: lines, next_cursor, enabled: true };
      },
    }),
    defineUpgradeRoute({
      path: STREAM_PATH,
      tag: "Operation",
      summary: "Requests of routes with an access log, within a second after their end (WebSocket)",
      description:
        'JSON messages `{"type":"lines","items":[…],"missed":0}`, at most ten per second, oldest request first; the first one has no requests. `missed` counts requests that were left out because the client did not read fast enough or there were more than 2 000 in 100 ms; they are counted before `route`, `status`, `q` and `sample` apply. While the log cannot be read, `{"type":"error","detail":"…","items":[],"missed":0}` says so once, and `{"type":"recovered","items":[],"missed":0}` when it can again. It closes with 1001 when the gateway stops.',
      query: streamQuery,
      problems: { 503: "Too many streams are open" },
    }),
  ];
}

/**
 * Creates the stream of requests. All clients share one reader of the log files, which runs only while there is a client:
 * requests cost the same with and without it.
 */
export function createAccessLogStreams(
  controller: Pick<Controller, "state">,
  { guard, logger }: Pick<LineStreamsOptions<LoggedRequest>, "guard" | "logger">,
): LineStreams<LoggedRequest> {
  const onError = (error: unknown): void => {
    logger.error("cannot follow the access log", { error: String(error) });
    streams.fail(describeReadError(error));
  };
  const streams: LineStreams<LoggedRequest> = new LineStreams({
    path: STREAM_PATH,
    guard,
    access: requireRead,
    readFilter: readStreamFilter,
    listen: () => {
      follower.start();
      return () => void follower.stop().catch(onError);
    },
    logger,
  });
  const follower = new LineFollower({
    readPath: () => controller.state.globals.accessLog?.path,
    onLines: (lines, missed) => {
      for (const line of lines) {
        const request = parseRequest(line);
        if (request !== undefined) streams.add(request);
      }
      if (missed > 0) streams.miss(missed);
    },
    onError,
    onRecovered: () => {
      logger.info("the access log can be followed again");
      streams.recover();
    },
  });
  return streams;
}

// Without the path, which readers need not know.
function describeReadError(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return `The access log cannot be read${code}.`;
}

function readStreamFilter(search: URLSearchParams): (request: LoggedRequest) => boolean {
  const { data, error } = streamQuery.safeParse(Object.fromEntries(search));
  if (data === undefined) {
    throw createValidationError(
      error.issues.map(({ path, message }) => ({ in: "query", path: path.join("."), message })),
    );
  }
  const accepts = createFilter(data);
  let seen = 0;
  return (request) => accepts(request) && seen++ % data.sample === 0;
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
}: RequestFilter): (request: LoggedRequest) => boolean {
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
