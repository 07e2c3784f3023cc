// Converts the outcome of an attempt to the result that is recorded.
import type { Delivery, DeliveryResult, Outcome } from "../delivery.ts";
import { planRetry } from "./retry.ts";

/** Options of {@link toResult}. */
export interface ResultOptions {
  nowMs: number;
  /** Delay of the first retry in ms. */
  retryMs: number;
  /** A number from 0 to 1. */
  random: number;
  /** True if the service is stopping: the next attempt is due immediately. */
  isStopping: boolean;
}

const EXPIRED = { relay: "", text: "the message expired before it could be sent" };
const DAMAGED = { relay: "", text: "the stored message is damaged and was not sent" };
const SUPPRESSED = { relay: "", text: "the address was suppressed after the message was accepted" };

/** Returns the result of an attempt, with its events. */
export function toResult(
  delivery: Delivery,
  outcome: Outcome | "suppressed" | "expired" | "damaged",
  options: ResultOptions,
): DeliveryResult {
  const repeated = delivery.mayBeDuplicate
    ? [
        {
          type: "duplicate_possible",
          detail:
            "an earlier attempt ended without a result, so the recipient may have the message twice",
        },
      ]
    : [];
  if (outcome === "suppressed") {
    const events = [{ type: "suppressed", detail: SUPPRESSED.text }];
    return { delivery, status: "suppressed", reply: SUPPRESSED, dueAt: undefined, events };
  }
  if (outcome === "expired") return expireResult(delivery, EXPIRED, repeated);
  if (outcome === "damaged") {
    const events = [{ type: "failed", detail: DAMAGED.text }];
    return { delivery, status: "failed", reply: DAMAGED, dueAt: undefined, events };
  }
  const { reply } = outcome;
  switch (outcome.kind) {
    case "sent":
      return { delivery, status: "sent", reply, dueAt: undefined, events: repeated };
    case "rejected": {
      const status = outcome.cause === "recipient" ? "bounced" : "failed";
      const events = [...repeated, { type: status, detail: describe(reply) }];
      return { delivery, status, reply, dueAt: undefined, events };
    }
    case "deferred":
      return deferResult(delivery, outcome, repeated, options);
    default:
      return outcome satisfies never;
  }
}

function deferResult(
  delivery: Delivery,
  { reply, retryAfterMs, mayHaveArrived }: Extract<Outcome, { kind: "deferred" }>,
  repeated: DeliveryResult["events"],
  { nowMs, retryMs, random, isStopping }: ResultOptions,
): DeliveryResult {
  const delayMs = planRetry({
    attempts: delivery.attempts + 1,
    baseMs: retryMs,
    hintMs: retryAfterMs,
    random,
  });
  if (delayMs === undefined) {
    const detail = `given up after ${delivery.attempts + 1} attempts: ${describe(reply)}`;
    const events = [...repeated, { type: "failed", detail }];
    return { delivery, status: "failed", reply, dueAt: undefined, events };
  }
  const { expiresAt = Number.POSITIVE_INFINITY } = delivery.message;
  if (nowMs + delayMs >= expiresAt) return expireResult(delivery, reply, repeated);
  const events = [...repeated, { type: "deferred", detail: describe(reply) }];
  if (mayHaveArrived) {
    const detail = "the connection was lost after the content was sent; the message is sent again";
    events.push({ type: "duplicate_possible", detail });
  }
  const dueAt = isStopping ? nowMs : nowMs + delayMs;
  return { delivery, status: "deferred", reply, dueAt, events };
}

function expireResult(
  delivery: Delivery,
  reply: DeliveryResult["reply"],
  repeated: DeliveryResult["events"],
): DeliveryResult {
  const events = [...repeated, { type: "expired", detail: describe(reply) }];
  return { delivery, status: "failed", reply, dueAt: undefined, events };
}

function describe({ relay, code, enhanced, text }: DeliveryResult["reply"]): string {
  return [relay, code, enhanced, text]
    .filter((part) => part !== undefined && part !== "")
    .join(" ");
}
