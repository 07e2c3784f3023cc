// The commands of clients with what each requires.
import type { Requirement } from "../access/requirement.ts";

/**
 * Requirements by command. UNSUBSCRIBE names a topic if it deletes a durable subscription. The messages of a transaction
 * are checked as SEND, again at COMMIT.
 */
export const COMMANDS = {
  CONNECT: "public",
  STOMP: "public",
  SEND: "publish",
  SUBSCRIBE: "subscribe",
  UNSUBSCRIBE: "subscribe",
  ACK: "caller",
  NACK: "caller",
  BEGIN: "caller",
  COMMIT: "caller",
  ABORT: "caller",
  DISCONNECT: "caller",
} as const satisfies Readonly<Record<string, Requirement>>;

/** A command of a client. */
export type Command = keyof typeof COMMANDS;

/** True if clients have this command. */
export function isCommand(text: string): text is Command {
  return Object.hasOwn(COMMANDS, text);
}
