// Operations on captured requests: list, show, export, replay.
import { PlatformError } from "@platform/kernel/errors";
import {
  checkSameOrigin,
  defineRoute,
  defineUpgradeRoute,
  type ApiRoute,
  type HeaderReader,
} from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { CaptureStore } from "../capture/capture-store.ts";
import type { CapturedRequest } from "../capture/captured-request.ts";
import { describe, detailSchema, matches, summarize, summarySchema } from "../capture/describe.ts";
import { formatHar, harSchema } from "../capture/har.ts";
import { editsSchema } from "../capture/replay-request.ts";
import type { TunnelRow } from "../database/schema.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";
import type { Replayer } from "../relay/replay.ts";
import { findTunnel } from "./tunnel-routes.ts";

/** Options of {@link createRequestRoutes}. */
export interface RequestRoutesOptions {
  store: TunnelStore;
  capture: CaptureStore;
  replayer: Replayer;
  clock: Clock;
  formatUrl: (tunnel: TunnelRow) => string;
}

const SEARCH_WORDS_MAX = 8;
/** Requests of one archive; those of larger rings are exported one by one. */
const HAR_REQUESTS_MAX = 200;

const HAR_DISPOSITION = ["content-disposition", 'attachment; filename="tunnel.har"'] as const;

const format = z.enum(["json", "har"]).default("json").meta({
  description: "har: an HTTP archive (HAR 1.2).",
});
const pageSchema = z.object({
  requests: z.array(summarySchema),
  captured: z.int().meta({ description: "Captured requests of the tunnel." }),
  next_cursor: z
    .string()
    .nullable()
    .meta({ description: "Continues with older requests; null at the end." }),
});
/** Path of the stream of captured requests. */
export const REQUEST_STREAM_PATH = "/api/v1/tunnels/{id}/requests/ws";

/** Parameters that choose requests. */
export const filterQuery = z.object({
  q: z.string().max(256).default("").meta({
    description:
      "Words that all must match: status:404, status:5xx, method:post, path:/api, or text of path, headers and text bodies.",
  }),
  status: z
    .string()
    .regex(/^[1-5x][0-9x]{2}$/i, "a status such as 404 or 5xx")
    .optional()
    .meta({ description: "404, 5xx: like the word status:404 of q." }),
});
const listQuery = filterQuery.extend({
  cursor: z.string().max(64).optional().meta({ description: "next_cursor of the previous page." }),
  limit: z
    .string()
    .regex(/^\d{1,4}$/, "a whole number from 1 to 1000")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 1_000, "a whole number from 1 to 1000")
    .default(1_000),
  format,
});
const idParams = z.object({ id: z.string().max(64) });
const requestParams = z.object({ id: z.string().max(64), reqID: z.string().max(64) });

/** The words that a request must match. */
export function readWords({ q, status }: z.output<typeof filterQuery>): string[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean).slice(0, SEARCH_WORDS_MAX);
  return status === undefined ? words : [`status:${status.toLowerCase()}`, ...words];
}

/** Creates the operations on captured requests. */
export function createRequestRoutes(options: RequestRoutesOptions): ApiRoute[] {
  const { store, capture, replayer, clock, formatUrl } = options;
  const own = { tag: "Requests" } as const;
  const find = (tunnel: TunnelRow, id: string) => expectCaptured(capture.find(tunnel.id, id));
  return [
    defineRoute({
      requires: "caller",
      ...own,
      method: "GET",
      path: "/api/v1/tunnels/{id}/requests",
      summary: "List captured requests, newest first",
      params: idParams,
      query: listQuery,
      answer: z.union([pageSchema, harSchema]),
      problems: { 404: "No such tunnel" },
      handle: ({ params, query, caller, answerHeaders }) => {
        const tunnel = findTunnel(store, params.id, caller);
        const nowMs = clock.now();
        const words = readWords(query);
        const found = capture
          .list(tunnel.id, query.cursor)
          .filter((entry) => matches(entry, words, nowMs));
        const page = found.slice(0, query.limit);
        if (query.format === "har") {
          const details = page.slice(0, HAR_REQUESTS_MAX).map((entry) => describe(entry, nowMs));
          answerHeaders.set(...HAR_DISPOSITION);
          return formatHar(details.reverse(), formatUrl(tunnel));
        }
        return {
          requests: page.map((entry) => summarize(entry, nowMs)),
          captured: capture.count(tunnel.id),
          next_cursor: found.length > page.length ? page.at(-1)!.id : null,
        };
      },
    }),
    defineUpgradeRoute({
      requires: "caller",
      ...own,
      path: REQUEST_STREAM_PATH,
      summary: "Captured requests as they begin and end (WebSocket)",
      description:
        'JSON messages `{"type":"lines","items":[…],"missed":0}`, at most ten per second; items are those of the list, and a request comes again with its answer. `missed` counts changes of all tunnels that were left out: the client did not read fast enough, or there were more than 500 in a second. It closes with 4401 when the credentials have expired or the tunnel is gone, and with 1001 when the relay stops.',
      params: idParams,
      query: filterQuery,
      problems: { 404: "No such tunnel", 503: "Too many streams are open" },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "GET",
      path: "/api/v1/tunnels/{id}/requests/{reqID}",
      summary: "Get a captured request with its messages",
      params: requestParams,
      query: z.object({ format }),
      answer: z.union([detailSchema, harSchema]),
      problems: { 404: "No such tunnel, or the request is no longer captured" },
      handle: ({ params, query, caller, answerHeaders }) => {
        const tunnel = findTunnel(store, params.id, caller);
        const detail = describe(find(tunnel, params.reqID), clock.now());
        if (query.format !== "har") return detail;
        answerHeaders.set(...HAR_DISPOSITION);
        return formatHar([detail], formatUrl(tunnel));
      },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "POST",
      path: "/api/v1/tunnels/{id}/replay/{reqID}",
      summary: "Send a captured request again, through the tunnel",
      params: requestParams,
      body: editsSchema.optional(),
      answer: z.object({
        status: z.literal("replayed"),
        response_status: z.int(),
        latency_ms: z.int(),
        request_id: z.string().meta({ description: "Id of the captured replay." }),
      }),
      problems: {
        403: "Sent by a page of another origin",
        404: "No such tunnel, or the request is no longer captured",
        409: "The body was captured only in part, or the request switched protocols",
        502: "The client is not connected, or the local service did not respond",
        504: "The local service did not respond in time",
      },
      handle: async ({ params, body, caller, headers }) => {
        expectSameOrigin(headers);
        const tunnel = findTunnel(store, params.id, caller);
        const replayed = await replayer.replay(find(tunnel, params.reqID), body ?? {});
        return {
          status: "replayed" as const,
          response_status: replayed.status,
          latency_ms: Math.round(replayed.latencyMs),
          request_id: replayed.id,
        };
      },
    }),
  ];
}

/** Throws 403 for requests of pages of other origins, among them those behind tunnels. */
export function expectSameOrigin(headers: HeaderReader): void {
  const verdict = checkSameOrigin(headers.get("host") ?? "", (name) => headers.get(name));
  if (!verdict.allowed) throw new PlatformError("forbidden", `Not allowed: ${verdict.reason}.`);
}

function expectCaptured(entry: CapturedRequest | undefined): CapturedRequest {
  if (entry !== undefined) return entry;
  throw new PlatformError("not_found", "There is no such captured request; it may be evicted.");
}
