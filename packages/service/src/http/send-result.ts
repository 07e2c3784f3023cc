// Answers from results of handlers.
import { setTimeout as sleep } from "node:timers/promises";
import { EventStream, formatEvent } from "../result/events.ts";
import { FileResult } from "../result/file-result.ts";
import { Reply } from "../result/reply.ts";
import { SocketUpgrade } from "../result/web-socket.ts";
import type { Call } from "./call.ts";
import { pump, type Chunk } from "./pump.ts";
import type { Sockets } from "./sockets.ts";

/** Services that results need. */
export interface ResultContext {
  readonly sockets: Sockets;
  /** Errors after the answer has begun. */
  readonly onLateError: (call: Call, error: unknown) => void;
}

type HeaderLines = readonly (readonly [name: string, value: string])[];

interface Draft {
  readonly status: number | undefined;
  readonly headers: HeaderLines;
}

const NO_SNIFF = ["X-Content-Type-Options", "nosniff"] as const;
const TEXT: HeaderLines = [["Content-Type", "text/plain; charset=utf-8"], NO_SNIFF];
const JSON_TYPE: HeaderLines = [["Content-Type", "application/json"], NO_SNIFF];
const BYTES: HeaderLines = [["Content-Type", "application/octet-stream"], NO_SNIFF];
const BARE: Draft = { status: undefined, headers: [] };
const EVENT_HEADERS: HeaderLines = [
  ["Content-Type", "text/event-stream"],
  ["Cache-Control", "no-store"],
  ["X-Accel-Buffering", "no"],
  NO_SNIFF,
];
const KEEP_ALIVE_MS = 15_000;
/** Fields that the server sets itself. */
const OWN_FIELDS = new Set([
  "connection",
  "content-length",
  "date",
  "transfer-encoding",
  "keep-alive",
]);

/**
 * Sends the result of a handler. Throws, before anything is sent, if the result has no answer: functions, symbols,
 * bigints, cyclic objects, a Response that was sent before.
 */
export function sendResult(
  call: Call,
  result: unknown,
  context: ResultContext,
): void | Promise<void> {
  return send(call, result, BARE, context);
}

function send(
  call: Call,
  result: unknown,
  draft: Draft,
  context: ResultContext,
): void | Promise<void> {
  const { exchange } = call;
  const status = draft.status ?? 200;
  switch (typeof result) {
    case "undefined":
      exchange.respond({ status: draft.status ?? 204, headers: draft.headers });
      return undefined;
    case "string":
      exchange.respond({ status, headers: withDefaults(draft, TEXT), body: result });
      return undefined;
    case "number":
    case "boolean":
      return sendJson(call, result, draft);
    case "object":
      return result === null
        ? sendJson(call, null, draft)
        : sendObject(call, result, draft, context);
    default:
      throw new TypeError(`the handler returned a ${typeof result}, which has no answer`);
  }
}

function sendObject(
  call: Call,
  result: object,
  draft: Draft,
  context: ResultContext,
): void | Promise<void> {
  const onError = (error: unknown): void => context.onLateError(call, error);
  if (result instanceof Reply) return send(call, result.body, result, context);
  if (result instanceof Response) return sendResponse(call, result, onError);
  if (result instanceof EventStream) return sendEvents(call, result, draft, onError);
  if (result instanceof SocketUpgrade) return context.sockets.accept(call, result.handlers);
  if (result instanceof FileResult) return sendFile(call, result, onError);
  if (result instanceof Uint8Array) {
    const headers = withDefaults(draft, BYTES);
    return call.exchange.respond({ status: draft.status ?? 200, headers, body: result });
  }
  if (result instanceof Blob) return sendBlob(call, result, draft, onError);
  if (result instanceof Error) throw result;
  if (Symbol.asyncIterator in result) {
    return sendIterable(call, result as AsyncIterable<unknown>, draft, onError);
  }
  return sendJson(call, result, draft);
}

function sendJson(call: Call, value: unknown, draft: Draft): void {
  const body = JSON.stringify(value) as string | undefined;
  if (body === undefined) throw new TypeError("the handler's result has no JSON form");
  call.exchange.respond({
    status: draft.status ?? 200,
    headers: withDefaults(draft, JSON_TYPE),
    body,
  });
}

async function sendResponse(
  call: Call,
  response: Response,
  onError: (error: unknown) => void,
): Promise<void> {
  if (response.bodyUsed) throw new TypeError("the Response was sent or read before");
  if (response.status < 200) throw new TypeError("the Response is an error response");
  // `fetch` has decoded the content of its responses, so their coding and length are those of other bytes.
  const isDecoded = response.url !== "" && response.headers.has("content-encoding");
  const headers = Array.from(response.headers).filter(
    ([name]) => !OWN_FIELDS.has(name) && !(isDecoded && name === "content-encoding"),
  );
  const { status, body } = response;
  if (body === null) return call.exchange.respond({ status, headers });
  const length = isDecoded ? null : response.headers.get("content-length");
  const head = /^\d{1,15}$/.test(length ?? "")
    ? { status, headers, contentLength: Number(length) }
    : { status, headers };
  return pump(call, head, body, onError);
}

function sendBlob(
  call: Call,
  blob: Blob,
  draft: Draft,
  onError: (error: unknown) => void,
): Promise<void> {
  const type = ["Content-Type", blob.type || "application/octet-stream"] as const;
  const headers = withDefaults(draft, [type, NO_SNIFF]);
  const head = { status: draft.status ?? 200, headers, contentLength: blob.size };
  return pump(call, head, blob.stream(), onError);
}

function sendEvents(
  call: Call,
  { source }: EventStream,
  draft: Draft,
  onError: (error: unknown) => void,
): Promise<void> {
  const head = { status: 200, headers: withDefaults(draft, EVENT_HEADERS) };
  return pump(call, head, formatEvents(call, source(call.signal)), onError);
}

async function* formatEvents(
  call: Call,
  source: ReturnType<EventStream["source"]>,
): AsyncGenerator<string> {
  const iterator = source[Symbol.asyncIterator]();
  const timers = new AbortController();
  call.onOver(() => timers.abort());
  try {
    // Sends the head's bytes and shows clients that the stream is open.
    yield ": open\n\n";
    let next = iterator.next();
    for (;;) {
      const waiting = new AbortController();
      const signal = AbortSignal.any([timers.signal, waiting.signal]);
      const silence = sleep(KEEP_ALIVE_MS, "silent" as const, { signal, ref: false });
      const result = await Promise.race([next, silence.catch(() => "over" as const)]);
      waiting.abort();
      if (result === "over") return;
      if (result === "silent") {
        yield ": keep-alive\n\n";
        continue;
      }
      if (result.done === true) return;
      yield formatEvent(result.value);
      next = iterator.next();
    }
  } finally {
    timers.abort();
    // The source may wait for long; its signal ends that.
    iterator.return?.().catch(() => {});
  }
}

/** Text, bytes, or objects as lines of JSON: the first item decides. */
async function sendIterable(
  call: Call,
  source: AsyncIterable<unknown>,
  draft: Draft,
  onError: (error: unknown) => void,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (call.isOver) {
    await iterator.return?.();
    return;
  }
  const isBytes = first.value instanceof Uint8Array;
  const lines: HeaderLines = [["Content-Type", "application/x-ndjson"], NO_SNIFF];
  const fallback = isBytes ? BYTES : typeof first.value === "object" ? lines : TEXT;
  const head = { status: draft.status ?? 200, headers: withDefaults(draft, fallback) };
  await pump(call, head, chunksOf(first, iterator), onError);
}

async function* chunksOf(
  first: IteratorResult<unknown>,
  iterator: AsyncIterator<unknown>,
): AsyncGenerator<Chunk> {
  try {
    for (let item = first; item.done !== true; item = await iterator.next()) {
      yield toChunk(item.value);
    }
  } finally {
    await iterator.return?.();
  }
}

function toChunk(value: unknown): Chunk {
  if (typeof value === "string" || value instanceof Uint8Array) return value;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a stream cannot contain a ${typeof value}`);
  return `${text}\n`;
}

async function sendFile(
  call: Call,
  { answer }: FileResult,
  onError: (error: unknown) => void,
): Promise<void> {
  const { status, content } = answer;
  const headers = [...answer.headers, NO_SNIFF];
  try {
    if (call.isOver) return;
    if (content === undefined) call.exchange.respond({ status, headers });
    else {
      const head = { status, headers, contentLength: content.length };
      await pump(call, head, content.read(), onError);
    }
  } finally {
    await content?.close();
  }
}

function withDefaults({ headers }: Draft, defaults: HeaderLines): HeaderLines {
  if (headers.length === 0) return defaults;
  const own = headers.filter(([name]) => !OWN_FIELDS.has(name.toLowerCase()));
  const names = new Set(own.map(([name]) => name.toLowerCase()));
  return [...defaults.filter(([name]) => !names.has(name.toLowerCase())), ...own];
}
