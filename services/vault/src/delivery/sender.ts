// What a way of delivery offers to the queue in front of it.
import type { PendingEvent } from "../model/event.ts";

/**
 * What became of one attempt. `retry` is worth another one; `blames` says whom: the target, which is then left alone
 * for a while, or this event, which steps aside. `afterMs` is what the target asked for.
 */
export type SendOutcome =
  | { kind: "delivered" }
  | { kind: "retry"; blames: "target" | "event"; reason: string; afterMs?: number };

/** Delivers to one target. `send` never rejects. */
export interface Sender {
  send(event: PendingEvent): Promise<SendOutcome>;
  close(): void;
}
