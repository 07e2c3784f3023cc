// Times of a request: the earliest and the latest one of its delivery.
import { createValidationError } from "@platform/kernel/http";
import type { SendRequest } from "./request.ts";

const SEND_AHEAD_MS_MAX = 30 * 86_400_000;

/** Returns the time of delivery; undefined for now. Throws if it is too far ahead; `path` is the place of the request. */
export function readSendAt(
  { send_at: text }: SendRequest,
  nowMs: number,
  path: string,
): number | undefined {
  if (text === undefined) return undefined;
  const atMs = Date.parse(text);
  if (atMs - nowMs <= SEND_AHEAD_MS_MAX) return atMs > nowMs ? atMs : undefined;
  const message = "at most 30 days ahead";
  throw createValidationError([{ in: "body", path: `${path}send_at`, message }]);
}

/** Returns the time after which the message is not sent; null without one. Throws unless it is after `earliestMs`. */
export function readExpiry(
  { expires_at: text }: SendRequest,
  earliestMs: number,
  path: string,
): number | null {
  if (text === undefined) return null;
  const atMs = Date.parse(text);
  if (atMs > earliestMs) return atMs;
  const message = "must be later than send_at, and in the future";
  throw createValidationError([{ in: "body", path: `${path}expires_at`, message }]);
}
