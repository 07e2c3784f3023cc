// Messages of the broker as frames, and back: see message-map.ts for the whole map.
import type { RecordHeader } from "@platform/log/batch";
import { DELAY_MS_MAX } from "../dispatch/delays.ts";
import { OWN_HEADER_PREFIX, readText, type Message } from "../message/message.ts";
import type { PublishInput } from "../publish/publish-input.ts";
import type { Destination } from "./destination.ts";
import { encodeHeaders, joinFrame, type Frame, type Header } from "./frame/frame.ts";
import { StompError } from "./frame/stomp-error.ts";
import type { StompVersion } from "./frame/version.ts";
import { readInteger } from "./header-values.ts";

const TTL_MS_MAX = 365 * 24 * 60 * 60 * 1_000;
const PRIORITY_MAX = 1_000_000;
const MESSAGE_ID_CHARS_MAX = 255;
const HEADERS_MAX = 100;

/** Headers of SEND that belong to the frame, or become properties of the message. */
const PROTOCOL_HEADERS: ReadonlySet<string> = new Set([
  "destination",
  "content-length",
  "receipt",
  "transaction",
  // Headers of MESSAGE, which the broker sets.
  "message-id",
  "subscription",
  "ack",
  "redelivered",
  "priority",
  "expires",
  "ttl",
  "delay",
]);
const OWN_HEADERS: ReadonlySet<string> = new Set(["platform-key", "platform-message-id"]);

/** The message of a SEND as the broker publishes it. Throws a `StompError` for invalid headers. */
export function toPublishInput(frame: Frame, topic: string, nowMs: number): PublishInput {
  const { headers, body } = frame;
  const key = headers.get("platform-key");
  const input: PublishInput = {
    topic,
    payload: body,
    isWire: true,
    headers: toRecordHeaders(headers),
    priority: readInteger(frame, "priority", -PRIORITY_MAX, PRIORITY_MAX),
    delayMs: readInteger(frame, "delay", 0, DELAY_MS_MAX),
    ttlMs: readTtl(frame, nowMs),
    messageId: readMessageId(headers.get("platform-message-id")),
  };
  if (key !== undefined) input.key = Buffer.from(key);
  return input;
}

function toRecordHeaders(headers: ReadonlyMap<string, string>): RecordHeader[] {
  const found: RecordHeader[] = [];
  for (const [key, value] of headers) {
    if (PROTOCOL_HEADERS.has(key) || OWN_HEADERS.has(key)) continue;
    if (key.startsWith(OWN_HEADER_PREFIX)) {
      throw new StompError("invalid", `${JSON.stringify(key)} is no header of the broker`);
    }
    found.push({ key, value: Buffer.from(value) });
  }
  if (found.length <= HEADERS_MAX) return found;
  throw new StompError("too-large", `a message has ${HEADERS_MAX} headers at most`);
}

function readTtl(frame: Frame, nowMs: number): number | undefined {
  const ttlMs = readInteger(frame, "ttl", 1, TTL_MS_MAX);
  // As ActiveMQ has it, 0 is never.
  const expiresMs = readInteger(frame, "expires", 0, Number.MAX_SAFE_INTEGER);
  if (ttlMs !== undefined || expiresMs === undefined || expiresMs === 0) return ttlMs;
  return Math.min(TTL_MS_MAX, Math.max(1, expiresMs - nowMs));
}

function readMessageId(text: string | undefined): string | undefined {
  if (text === undefined || (text !== "" && text.length <= MESSAGE_ID_CHARS_MAX)) return text;
  throw new StompError(
    "invalid",
    `the header platform-message-id has 1 to ${MESSAGE_ID_CHARS_MAX} characters`,
  );
}

/** The form of a subscription's deliveries. */
export interface DeliveryForm {
  version: StompVersion;
  prefix: Destination["prefix"];
  /** The encoded header line of the subscription's id; empty if the client gave none (1.0). */
  subscriptionLine: string;
}

/** Encodes messages; what is the same for all subscriptions only once. */
export class MessageEncoder {
  readonly #heads: Record<StompVersion, WeakMap<Message, string>> = {
    "1.0": new WeakMap(),
    "1.1": new WeakMap(),
    "1.2": new WeakMap(),
  };

  /** The MESSAGE frame. `messageId` and `ack` identify the delivery; `ack` is undefined before 1.2 and without ACK. */
  encode(
    message: Message,
    { version, prefix, subscriptionLine }: DeliveryForm,
    messageId: string,
    ack: string | undefined,
  ): Buffer {
    const cache = this.#heads[version];
    let rest = cache.get(message);
    if (rest === undefined)
      cache.set(message, (rest = encodeHeaders(listHeaders(message), version)));
    const ids = encodeHeaders([["message-id", messageId]], version);
    const ackLine = ack === undefined ? "" : `ack:${ack}\n`;
    // Names of topics hold nothing that is escaped.
    const head = `MESSAGE\ndestination:${prefix}${message.topic.name}\n${subscriptionLine}${ids}${ackLine}${rest}\n`;
    return joinFrame(head, message.payload);
  }
}

/** The headers of a delivery, apart from those of the subscription. */
function listHeaders(message: Message): Header[] {
  const { payload, priority, expiresAt, retryCount, key } = message;
  const own: Header[] = [["content-length", String(payload.length)]];
  if (priority !== 0) own.push(["priority", String(priority)]);
  if (expiresAt !== undefined) own.push(["expires", String(expiresAt)]);
  if (retryCount > 0) {
    own.push(["redelivered", "true"], ["platform-retry-count", String(retryCount)]);
  }
  if (key !== null) own.push(["platform-key", toHeaderText(key)]);
  own.push(["timestamp", String(message.timestamp)]);
  const taken = new Set(["destination", "subscription", "message-id", "ack"]);
  for (const [name] of own) taken.add(name);
  const given = message.headers.filter(({ key: name }) => !taken.has(name));
  return [...own, ...given.map((header): Header => [header.key, toHeaderText(header.value)])];
}

/** Text as it is; other bytes, and text with NUL, in base64. */
function toHeaderText(value: Buffer | null): string {
  if (value === null) return "";
  return (value.includes(0) ? undefined : readText(value)) ?? value.toString("base64");
}
