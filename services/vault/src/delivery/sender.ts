// The interface between a queue and its way of delivery.
import type { PendingEvent } from "../model/event.ts";

/**
 * The result of one attempt. `retry` allows another one. `blames` names the culprit: the target, which then gets a pause,
 * or this event, which is delayed alone. `afterMs` is the delay that the target requested.
 */
export type SendOutcome =
  | { kind: "delivered" }
  | { kind: "retry"; blames: "target" | "event"; reason: string; afterMs?: number };

/** Delivers to one target. `send` never rejects. */
export interface Sender {
  send(event: PendingEvent): Promise<SendOutcome>;
  close(): void;
}
