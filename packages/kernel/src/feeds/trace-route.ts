// /api/v1/admin/traces/{trace_id}: the spans that a service keeps of a trace.
import { z } from "zod";
import { defineRoute, type ApiRoute } from "../http/index.ts";
import type { FinishedSpan } from "../trace/index.ts";

/** A span, and the service that it is of. */
export interface KeptSpan {
  readonly service: string;
  readonly span: FinishedSpan;
}

const attributesSchema = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]),
);
const spanSchema = z
  .object({
    service: z.string().meta({ description: "short name of the service or project" }),
    span_id: z.string(),
    parent_span_id: z.string().meta({ description: "empty without a parent" }),
    name: z.string(),
    kind: z.enum(["internal", "server", "client", "producer", "consumer"]),
    start_ms: z.number().meta({ description: "milliseconds since 1970, with fractions" }),
    duration_ms: z.number(),
    status: z.enum(["unset", "ok", "error"]),
    status_message: z.string(),
    attributes: attributesSchema,
    events: z.array(
      z.object({ name: z.string(), at_ms: z.number(), attributes: attributesSchema }),
    ),
  })
  .meta({ id: "Span" });

/** Creates the route; `find` returns the spans of a trace id, which is 32 lower-case hexadecimal digits. */
export function createTraceRoute(
  find: (traceId: string) => Promise<readonly KeptSpan[]>,
): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/admin/traces/{trace_id}",
    summary: "Spans of a trace that this service keeps",
    description:
      "At most 1 MiB of spans is kept in memory; those with errors and slow ones longest, of others at most 50 traces a second. Empty for a trace that is not known.",
    isRoutine: true,
    params: z.object({
      trace_id: z.string().regex(/^[0-9a-f]{32}$/, "32 lower-case hexadecimal digits"),
    }),
    answer: z.object({ spans: z.array(spanSchema) }),
    handle: async ({ params: { trace_id: traceId } }) => ({
      spans: (await find(traceId)).map(toDocument),
    }),
  });
}

function toDocument({ service, span }: KeptSpan): z.input<typeof spanSchema> {
  return {
    service,
    span_id: span.context.spanId,
    parent_span_id: span.parentSpanId,
    name: span.name,
    kind: span.kind,
    start_ms: span.startMs,
    duration_ms: Math.max(0, span.endMs - span.startMs),
    status: span.status,
    status_message: span.statusMessage,
    attributes: toAttributes(span.attributes),
    events: span.events.map(({ name, atMs, attributes }) => ({
      name,
      at_ms: atMs,
      attributes: toAttributes(Object.entries(attributes)),
    })),
  };
}

function toAttributes(
  entries: Iterable<readonly [string, string | number | boolean | readonly string[]]>,
): z.input<typeof attributesSchema> {
  return Object.fromEntries(
    Array.from(entries, ([name, value]) => [name, typeof value === "object" ? [...value] : value]),
  );
}
