// The interface between a queue and its way of delivery.
import type { TraceHeaders } from "@platform/kernel/trace";

/**
 * The result of one attempt. `retry` allows another one. `blames` names the culprit: the target, which then gets a pause,
 * or this event, which is delayed alone. `afterMs` is the delay that the target requested, `status` that of an HTTP answer.
 */
export type SendOutcome =
  | { kind: "delivered"; status?: number }
  | {
      kind: "retry";
      blames: "target" | "event";
      reason: string;
      afterMs?: number;
      status?: number;
    };

/** A message for a target. */
export interface Message {
  /** The same in each attempt, so that receivers recognise repetitions. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
  /** The trace of the change; continued by targets that can. */
  readonly trace: TraceHeaders;
}

/** Delivers to one target. `send` never rejects. */
export interface Sender {
  send(message: Message): Promise<SendOutcome>;
  close(): void;
}
