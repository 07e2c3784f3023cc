// A member of a shared subscription.
import type { Message } from "../message/message.ts";
import type { Sink } from "./subscription.ts";

/** Handle of a member. */
export interface MemberHandle {
  leave: () => void;
}

/** Options of a member. */
export interface MemberOptions {
  /** True: messages are acknowledged by `acknowledge`. False: when they have been sent. */
  isManual: boolean;
  /** Maximum number of unacknowledged messages. */
  prefetch: number;
  /** With `isManual`: an unacknowledged message is redelivered after this time, in ms. */
  ackWaitMs: number;
}

interface HeldMessage {
  message: Message;
  deadlineMs: number;
}

/** A member with its delivered but unacknowledged messages (`held`), in order of delivery and therefore of deadlines. */
export type GroupMember = MemberHandle &
  MemberOptions & { sink: Sink; held: Map<string, HeldMessage> };

/** True if a member accepts another message. */
export function canTake({ held, prefetch, sink }: GroupMember): boolean {
  return held.size < prefetch && sink.canSend();
}
