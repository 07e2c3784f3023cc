// Spans of a project for the platform that supervises it, in bounded batches.
import { SpanKeeper, type FinishedSpan, type SpanExporter } from "@platform/kernel/trace";
import type { SentSpan, SpansMessage } from "./messages.ts";

const BATCH_MS = 300;
const BATCH_MAX = 200;
const ATTRIBUTES_MAX = 32;

/** Options of {@link createSpanSender}. */
export interface SpanSenderOptions {
  send: (message: SpansMessage) => void;
  readMonotonicMs: () => number;
}

/** Creates the receiver of a project's spans. It sends those with errors, slow ones, and some of the others. */
export function createSpanSender({ send, readMonotonicMs }: SpanSenderOptions): SpanExporter {
  // Its memory is not used: it decides which spans are worth a message.
  const limit = new SpanKeeper({ bytesMax: 0, readMonotonicMs });
  let batch: SentSpan[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (batch.length > 0) send({ type: "spans", spans: batch });
    batch = [];
  };
  return {
    export: (span) => {
      const isError = span.status === "error";
      if (batch.length >= BATCH_MAX || !limit.takes(isError, span.endMs - span.startMs)) return;
      limit.export(span);
      batch.push(encode(span));
      timer ??= setTimeout(flush, BATCH_MS).unref();
    },
    shutdown: async () => flush(),
  };
}

function encode({ context, events, attributes, ...span }: FinishedSpan): SentSpan {
  const { parentSpanId, name, kind, startMs, endMs, status, statusMessage } = span;
  const list = [...attributes].slice(0, ATTRIBUTES_MAX);
  const { traceId, spanId } = context;
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind,
    startMs,
    endMs,
    status,
    statusMessage,
    attributes: list,
    events: events.map(({ name: event, atMs }) => ({ name: event, atMs })),
  };
}
