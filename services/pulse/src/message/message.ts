// A message of the broker, and the record it is stored as.
import type { NewRecord, RecordHeader, StoredRecord } from "@platform/log/batch";
import { z } from "zod";
import type { Topic } from "../topic/topics.ts";

/*
 * Record: key = the partition key, value = the payload, timestamp = time of publication, headers = the client's own and
 * these, which only the broker writes:
 *
 *   platform-message-id    text      platform-expires-at    epoch ms, decimal
 *   platform-priority      decimal   platform-retry-count   decimal
 *   platform-mqtt          what only MQTT knows of a message: see ../mqtt/message-form.ts
 */

/** Prefix of the record headers that only the broker writes. */
export const OWN_HEADER_PREFIX = "platform-";
const ID_HEADER = "platform-message-id";
const PRIORITY_HEADER = "platform-priority";
const EXPIRES_HEADER = "platform-expires-at";
const RETRY_HEADER = "platform-retry-count";
const MQTT_HEADER = "platform-mqtt";
const NOTHING_ELSE = {};

/** Metadata of a message. */
export interface MessageFacts {
  /** "" for messages of wire protocols, whose id is `<partition>:<offset>`. */
  id: string;
  priority: number;
  /** Epoch milliseconds; `undefined` for no expiry. */
  expiresAt: number | undefined;
  retryCount: number;
  /** Set for messages of MQTT clients. */
  mqtt?: Buffer | undefined;
}

/** A message that can be delivered. */
export interface Message extends MessageFacts {
  topic: Topic;
  partition: number;
  offset: number;
  key: Buffer | null;
  payload: Buffer;
  timestamp: number;
  /** Headers of the client. */
  headers: readonly RecordHeader[];
  /** True if it was published with an id, as over HTTP; false for other messages of wire protocols. */
  isOwn: boolean;
}

/** Converts a message to the record it is stored as. */
export function toRecord(
  content: { key: Buffer | null; payload: Buffer; headers: readonly RecordHeader[] },
  facts: MessageFacts,
  timestamp: number,
): NewRecord {
  const headers = [...content.headers];
  if (facts.id !== "") headers.push({ key: ID_HEADER, value: Buffer.from(facts.id) });
  if (facts.priority !== 0) headers.push(numberHeader(PRIORITY_HEADER, facts.priority));
  if (facts.expiresAt !== undefined) headers.push(numberHeader(EXPIRES_HEADER, facts.expiresAt));
  if (facts.retryCount !== 0) headers.push(numberHeader(RETRY_HEADER, facts.retryCount));
  if (facts.mqtt !== undefined) headers.push({ key: MQTT_HEADER, value: facts.mqtt });
  return { key: content.key, value: content.payload, headers, timestamp };
}

/** Converts a record to a message. Messages without an id get `<partition>:<offset>`. */
export function toMessage(topic: Topic, partition: number, record: StoredRecord): Message {
  const { offset, key, value, timestamp } = record;
  const message: Message = {
    topic,
    partition,
    offset,
    key,
    payload: value ?? Buffer.alloc(0),
    timestamp,
    headers: record.headers,
    id: "",
    priority: 0,
    expiresAt: undefined,
    retryCount: 0,
    mqtt: undefined,
    isOwn: false,
  };
  const own = record.headers.filter((header) => header.key.startsWith(OWN_HEADER_PREFIX));
  if (own.length > 0) readFacts(message, own);
  if (message.id === "") message.id = `${partition}:${offset}`;
  return message;
}

/** Identifies a message in its topic: `partition:offset`. */
export function placeOf({ partition, offset }: Message): string {
  return `${partition}:${offset}`;
}

/** True if a message of a topic is the one at this place. */
export function isAt(message: Message, partition: number, offset: number): boolean {
  return message.partition === partition && message.offset === offset;
}

/** A message as `formatMessage` writes it, for the API. */
export const messageAnswer = z
  .object({
    topic: z.string(),
    partition: z.int(),
    offset: z.int(),
    message_id: z.string(),
    key: z.string().nullable(),
    payload: z.string(),
    encoding: z.literal("base64").optional().describe("If the payload is not text."),
    timestamp: z.int().describe("Epoch ms."),
    priority: z.int(),
    headers: z.record(z.string(), z.string()),
    retry_count: z.int().optional(),
  })
  .meta({ id: "Message" });

/**
 * One line of JSON for SSE, WebSocket and tail, with the members of `extra`; payloads and headers that are not text are in
 * base64.
 */
export function formatMessage(message: Message, extra: object = NOTHING_ELSE): string {
  const { topic, partition, offset, id, key, payload, timestamp, priority } = message;
  const text = readText(payload);
  return JSON.stringify({
    topic: topic.name,
    partition,
    offset,
    message_id: id,
    key: key === null ? null : (readText(key) ?? key.toString("base64")),
    payload: text ?? payload.toString("base64"),
    ...(text === undefined ? { encoding: "base64" } : {}),
    timestamp,
    priority,
    headers: formatHeaders(message.headers),
    ...(message.retryCount > 0 ? { retry_count: message.retryCount } : {}),
    ...extra,
  });
}

/** Decodes UTF-8; `undefined` if the bytes are not valid. */
export function readText(bytes: Buffer): string | undefined {
  const text = bytes.toString("utf8");
  // The replacement character may also have been in the original text.
  return text.includes("\ufffd") && !Buffer.from(text).equals(bytes) ? undefined : text;
}

function readFacts(message: Message, own: readonly RecordHeader[]): void {
  message.headers = message.headers.filter((header) => !own.includes(header));
  for (const { key, value } of own) {
    if (key === MQTT_HEADER) {
      message.mqtt = value ?? undefined;
      continue;
    }
    const text = value?.toString("utf8") ?? "";
    if (key === ID_HEADER) {
      message.id = text;
      message.isOwn = true;
    } else if (key === PRIORITY_HEADER) message.priority = readNumber(text) ?? 0;
    else if (key === EXPIRES_HEADER) message.expiresAt = readNumber(text);
    else if (key === RETRY_HEADER) message.retryCount = readNumber(text) ?? 0;
  }
}

function readNumber(text: string): number | undefined {
  const number = Number(text);
  return text !== "" && Number.isSafeInteger(number) ? number : undefined;
}

function numberHeader(key: string, value: number): RecordHeader {
  return { key, value: Buffer.from(String(value)) };
}

// Entries instead of assignments, since a header may be named __proto__.
function formatHeaders(headers: readonly RecordHeader[]): Record<string, string | null> {
  return Object.fromEntries(
    headers.map(({ key, value }) => [
      key,
      value === null ? null : (readText(value) ?? value.toString("base64")),
    ]),
  );
}
