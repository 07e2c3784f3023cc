// The spans of a trace, asked of all services, as a tree with places in time.
import type { ServiceId } from "@platform/console/contract";
import { ApiFailure, withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { callService, services } from "../session/session.ts";

type LogLine = Answer<"runtime", "GET /logs">["items"][number];
type LogPage = Answer<"runtime", "GET /logs">;
/** A span of a service. */
export type Span = Answer<"runtime", "GET /admin/traces/{trace_id}">["spans"][number];

/** Pages of 8 MiB of the log that are searched. */
const LOG_PAGES_MAX = 5;
const LINES_MAX = 300;
/** Identifiers of traces. */
const TRACE_ID = /^[0-9a-f]{32}$/;

/** A span at its place in the tree. */
export interface PlacedSpan {
  span: Span;
  depth: number;
  /** Parts of the whole time, 0 to 1. */
  from: number;
  width: number;
}

/** The spans and lines of a trace over all services. */
export interface FoundTrace {
  spans: PlacedSpan[];
  durationMs: number;
  /** Lines of the log, oldest first. */
  lines: LogLine[];
  /** Services that did not answer, or refused. */
  silent: ServiceId[];
}

/** Address of the page of a trace. */
export function tracePath(traceId: string): string {
  return `/runtime/traces/${traceId}`;
}

/** True if a text can be the identifier of a trace. */
export function isTraceId(text: string): boolean {
  return TRACE_ID.test(text);
}

/** Asks all services for the spans of a trace, and the runtime for its lines. */
export async function loadTrace(traceId: string, signal: AbortSignal): Promise<FoundTrace> {
  const silent: ServiceId[] = [];
  const asked = services.value.map(async ({ id }) => {
    try {
      // All services answer as the runtime does.
      const path = `/admin/traces/${traceId}` as const;
      const answer = await callService<Answer<"runtime", "GET /admin/traces/{trace_id}">>(
        id,
        path,
        {
          signal,
        },
      );
      return answer.spans;
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      silent.push(id);
      return [];
    }
  });
  const [lines, ...lists] = await Promise.all([loadLines(traceId, signal, silent), ...asked]);
  const spans = lists.flat();
  return { ...placeSpans(spans), lines, silent: [...new Set(silent)] };
}

async function loadLines(
  traceId: string,
  signal: AbortSignal,
  silent: ServiceId[],
): Promise<LogLine[]> {
  if (!services.value.some(({ id }) => id === "runtime")) return [];
  const found: LogLine[] = [];
  let cursor: string | undefined;
  try {
    for (let page = 0; page < LOG_PAGES_MAX && found.length < LINES_MAX; page += 1) {
      const path = withQuery("/logs", { q: traceId, limit: LINES_MAX, cursor });
      const answer = await callService<LogPage>("runtime", path, { signal });
      // Others only mention it, such as requests for it.
      found.push(...answer.items.filter((line) => line.trace_id === traceId));
      if (answer.next_cursor === null || (page > 0 && found.length > 0)) break;
      cursor = answer.next_cursor;
    }
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    silent.push("runtime");
  }
  return found.reverse();
}

/** Orders spans as a tree: children follow their parent in the order of their starts. */
function placeSpans(spans: readonly Span[]): Pick<FoundTrace, "spans" | "durationMs"> {
  const known = new Map(spans.map((span) => [span.span_id, span]));
  const children = new Map<string, Span[]>();
  for (const span of spans) {
    const parent = known.has(span.parent_span_id) ? span.parent_span_id : "";
    children.set(parent, [...(children.get(parent) ?? []), span]);
  }
  const start = Math.min(...spans.map(({ start_ms: at }) => at));
  const end = Math.max(...spans.map(({ start_ms: at, duration_ms: ms }) => at + ms));
  const durationMs = spans.length === 0 ? 0 : Math.max(end - start, 0.001);
  const placed: PlacedSpan[] = [];
  const seen = new Set<string>();
  const visit = (parent: string, depth: number): void => {
    const list = children.get(parent) ?? [];
    for (const span of list.toSorted((one, other) => one.start_ms - other.start_ms)) {
      if (seen.has(span.span_id)) continue;
      seen.add(span.span_id);
      const from = (span.start_ms - start) / durationMs;
      placed.push({ span, depth, from, width: span.duration_ms / durationMs });
      visit(span.span_id, depth + 1);
    }
  };
  visit("", 0);
  return { spans: placed, durationMs };
}
