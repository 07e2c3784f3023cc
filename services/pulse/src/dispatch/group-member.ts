// A member of a shared subscription.
import type { Message } from "../message.ts";
import type { Sink } from "./subscription.ts";

/** One member. */
export interface MemberHandle {
  leave: () => void;
}

/** How a member takes messages. */
export interface MemberOptions {
  /** A message counts as acknowledged when `acknowledge` is called, else when it has been sent. */
  isManual: boolean;
  /** Messages that it may hold unacknowledged. */
  prefetch: number;
  /** With `isManual`: a message that is not acknowledged for this time is taken back, in ms. */
  ackWaitMs: number;
}

export interface HeldMessage {
  message: Message;
  deadlineMs: number;
}

/** `held` is in the order of deliveries, and so of deadlines. */
export type GroupMember = MemberHandle &
  MemberOptions & { sink: Sink; held: Map<string, HeldMessage> };
