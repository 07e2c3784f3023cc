// Messaging over HTTP: publishing, and subscriptions by server-sent events.
import { setTimeout as sleep } from "node:timers/promises";
import { EventSourceParserStream, type EventSourceMessage } from "eventsource-parser/stream";
import { callPlatform, PlatformServiceError } from "./platform-call.ts";
import { requireSettings } from "./required.ts";

/** Options of `messages.publish`. */
export interface PublishOptions {
  /** Messages with the same key keep their order. */
  key?: string;
  /** A second message with this id within five minutes is dropped. */
  id?: string;
  /** Delay before delivery. */
  delayMs?: number;
  /** Time after which an unconsumed message becomes a dead letter. */
  ttlMs?: number;
  /** Higher first; default 0. */
  priority?: number;
  headers?: Readonly<Record<string, string>>;
}

/** Options of `messages.subscribe`. */
export interface SubscribeOptions {
  /** `earliest`, `latest` (default) or an offset. A lost connection resumes after the last message. */
  from?: "earliest" | "latest" | number;
  /**
   * Shares the messages among all subscribers of this group. A message is acknowledged when the loop requests the next one;
   * if the loop ends by `break` or an error, it is delivered again.
   */
  group?: string;
  /** Messages of a group that wait for this subscriber; default 1. */
  prefetch?: number;
  /** Ends the subscription: the loop ends without an error. */
  signal?: AbortSignal;
}

/** A received message. */
export class Message {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly id: string;
  readonly key: string | undefined;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Failed deliveries before this one. */
  readonly retryCount: number;
  readonly #payload: string;
  readonly #isBinary: boolean;

  constructor(wire: WireMessage) {
    this.topic = wire.topic;
    this.partition = wire.partition;
    this.offset = wire.offset;
    this.id = wire.message_id;
    this.key = wire.key ?? undefined;
    this.timestamp = wire.timestamp;
    this.headers = wire.headers ?? {};
    this.retryCount = wire.retry_count ?? 0;
    this.#payload = wire.payload;
    this.#isBinary = wire.encoding === "base64";
  }

  /** The content as text. */
  text(): string {
    return this.#isBinary ? this.bytes().toString("utf8") : this.#payload;
  }

  /** The content as bytes. */
  bytes(): Buffer {
    return Buffer.from(this.#payload, this.#isBinary ? "base64" : "utf8");
  }

  /** The content, parsed as JSON. Throws a SyntaxError for other content. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

/** A message as messaging sends it. */
interface WireMessage {
  topic: string;
  partition: number;
  offset: number;
  message_id: string;
  key: string | null;
  payload: string;
  encoding?: "base64";
  timestamp: number;
  headers?: Record<string, string>;
  retry_count?: number;
}

const PART = "messages";
/** Messaging sends a comment every 15 s. */
const SILENCE_MS = 45_000;
const RETRY_MS = 500;
const RETRY_MS_MAX = 15_000;
const EVENT_CHARACTERS_MAX = 32 * 1024 * 1024;

/** Publishes a message; resolves when it is stored. Text and bytes are sent as they are, other values as JSON. */
export async function publishMessage(
  topic: string,
  payload: unknown,
  { delayMs, ttlMs, id, ...options }: PublishOptions,
): Promise<{ id: string }> {
  const answer = await callPlatform({
    ...getTarget(),
    method: "POST",
    path: "/api/v1/publish",
    body: {
      topic,
      ...encodePayload(payload),
      delay_ms: delayMs,
      ttl_ms: ttlMs,
      message_id: id,
      ...options,
    },
  });
  const { message_id } = (await answer.json()) as { message_id: string };
  return { id: message_id };
}

/** Yields messages until `signal` is aborted. Throws a PlatformServiceError if the subscription is refused. */
export async function* subscribe(
  topic: string,
  options: SubscribeOptions,
): AsyncGenerator<Message, void> {
  const { group, signal } = options;
  const place = { lastId: undefined as string | undefined, retryMs: RETRY_MS };
  while (!isAborted(signal)) {
    try {
      for await (const event of openEvents(topic, options, place.lastId)) {
        if (event.event === "dropped") break;
        place.retryMs = RETRY_MS;
        const message = new Message(JSON.parse(event.data) as WireMessage);
        // A loop that ends does not return here: the message of a group is then delivered again.
        yield message;
        if (group !== undefined) await acknowledge(message, group);
        place.lastId = event.id;
      }
    } catch (error) {
      if (isAborted(signal)) return;
      if (isFinal(error)) throw error;
    }
    await sleep(place.retryMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
    place.retryMs = Math.min(RETRY_MS_MAX, place.retryMs * 2);
  }
}

// If it fails, messaging delivers the message again after a while.
async function acknowledge({ topic, partition, offset }: Message, group: string): Promise<void> {
  const body = { topic, group, id: `${partition}:${offset}` };
  const path = "/api/v1/ack";
  await callPlatform({ ...getTarget(), method: "POST", path, body }).catch((error: unknown) => {
    if (!(error instanceof PlatformServiceError)) throw error;
  });
}

async function* openEvents(
  topic: string,
  { from, group, prefetch = 1, signal }: SubscribeOptions,
  lastId: string | undefined,
): AsyncGenerator<EventSourceMessage, void> {
  const query = new URLSearchParams({
    ...(from === undefined ? {} : { from: String(from) }),
    ...(group === undefined ? {} : { group, ack: "manual", prefetch: String(prefetch) }),
  });
  const ended = new AbortController();
  const silence = setTimeout(() => ended.abort(new Error("messaging is silent")), SILENCE_MS);
  try {
    const { body } = await callPlatform({
      ...getTarget(),
      path: `/api/v1/subscribe/${encodeURIComponent(topic)}?${query.toString()}`,
      headers: {
        Accept: "text/event-stream",
        // A group keeps its position itself.
        ...(lastId === undefined || group !== undefined ? {} : { "Last-Event-ID": lastId }),
      },
      signal: signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]),
    });
    const parser = new EventSourceParserStream({ maxBufferSize: EVENT_CHARACTERS_MAX });
    const watched = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (chunk, controller) => {
        silence.refresh();
        controller.enqueue(chunk);
      },
    });
    const text = body!.pipeThrough(watched).pipeThrough(new TextDecoderStream());
    yield* text.pipeThrough(parser);
  } finally {
    clearTimeout(silence);
    ended.abort();
  }
}

// TypeScript would take the first reading for all later ones.
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

// Refusals that a repetition does not change.
function isFinal(error: unknown): boolean {
  if (!(error instanceof PlatformServiceError)) return error instanceof SyntaxError;
  const { status } = error;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Encodes a payload: text as it is, bytes in base64, other values as JSON. */
export function encodePayload(payload: unknown): { payload: string; encoding?: "base64" } {
  if (typeof payload === "string") return { payload };
  if (payload instanceof Uint8Array) {
    const { buffer, byteOffset, byteLength } = payload;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    return { payload: bytes.toString("base64"), encoding: "base64" };
  }
  const text = JSON.stringify(payload) as string | undefined;
  if (text === undefined) throw new TypeError("messages.publish: the payload is not JSON");
  return { payload: text };
}

function getTarget(): { part: string; base: string } {
  return { part: PART, base: requireSettings(PART, ["messaging_url"]).messaging_url };
}
