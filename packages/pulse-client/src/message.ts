// Messages as programs write and read them, in the names of the broker's API.
import { PulseClientError, type Problem } from "./errors.ts";

/** A message to publish. */
export interface OutgoingMessage {
  topic: string;
  /** Text and bytes as they are; every other value as JSON. */
  payload: unknown;
  /** Messages with the same key go to the same partition, in order. */
  key?: string;
  /** Default: a random one. The broker drops a second message with it within five minutes. */
  message_id?: string;
  headers?: Record<string, string>;
  /** Higher is delivered first. */
  priority?: number;
  /** Counted by the broker from the arrival of the message, not from `publish`. */
  delay_ms?: number;
  ttl_ms?: number;
}

/** A message in the form of `POST /api/v1/publish/batch`. */
export interface WireMessage extends Omit<OutgoingMessage, "payload" | "message_id"> {
  payload: string;
  encoding?: "base64";
  message_id: string;
}

/** A message in the queue. */
export interface QueuedMessage {
  /** Its place in the queue, and its sequence number. */
  key: number;
  message: WireMessage;
  /** Size as JSON in UTF-8. */
  bytes: number;
  /** By the clock of this machine, epoch ms. */
  queuedAtMs: number;
  /** The reason if it was set aside. */
  problem?: Problem;
}

/** The broker's acknowledgement of a message. */
export interface SentMessage {
  message_id: string;
  topic: string;
  /** Without a value if the message is delayed, or a duplicate of one whose place the broker does not remember. */
  partition?: number;
  offset?: number;
  /** True if the broker had it already: an earlier attempt had arrived. */
  duplicate: boolean;
  scheduled_for?: number;
  /** The dead letter topic, if the message was stored there. */
  routed_to?: string;
  failure_reason?: string;
}

/** A received message. */
export interface ReceivedMessage {
  topic: string;
  partition: number;
  offset: number;
  message_id: string;
  key: string | null;
  payload: string;
  /** If the payload is not text. */
  encoding?: "base64";
  /** By the broker's clock, epoch ms. */
  timestamp: number;
  priority: number;
  headers: Record<string, string>;
  retry_count?: number;
}

/** Prepares a message for the queue. Throws `message_too_large` above `bytesMax`. */
export function toWire(
  outgoing: OutgoingMessage,
  bytesMax: number,
): { message: WireMessage; bytes: number } {
  const { payload, message_id = randomId(), ...others } = outgoing;
  const message: WireMessage = { ...others, message_id, ...encodePayload(payload) };
  const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
  if (bytes > bytesMax) {
    throw new PulseClientError(
      "message_too_large",
      `The message has ${bytes} bytes as JSON; at most ${bytesMax} are allowed.`,
    );
  }
  return { message, bytes };
}

/** 128 random bits in hex. `crypto.randomUUID` exists in secure contexts only. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

function encodePayload(payload: unknown): Pick<WireMessage, "payload" | "encoding"> {
  if (typeof payload === "string") return { payload };
  const bytes =
    payload instanceof ArrayBuffer
      ? new Uint8Array(payload)
      : ArrayBuffer.isView(payload)
        ? new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength)
        : undefined;
  if (bytes !== undefined) return { payload: toBase64(bytes), encoding: "base64" };
  const text = JSON.stringify(payload) as string | undefined;
  if (text === undefined) throw new TypeError("The payload cannot be written as JSON.");
  return { payload: text };
}

function toBase64(bytes: Uint8Array): string {
  // In parts, because arguments of a call are limited.
  let text = "";
  for (let start = 0; start < bytes.length; start += 8_192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8_192));
  }
  return btoa(text);
}
