// Messages as the service reports them.
import type { Answer } from "../contract/answer.ts";
import type { StateKind } from "../view/state.tsx";

/** Permission that the operations of sending require. */
export const SEND = "notify:send";
/** Permission that all others require. */
export const MANAGE = "notify:manage";

/** A message and its deliveries. */
export type SentMessage = Answer<"notify", "GET /messages/{id}">;

/** The shape of a state of a delivery. */
export function kindOf(status: string): StateKind {
  if (["sent", "delivered"].includes(status)) return "ok";
  if (["bounced", "failed"].includes(status)) return "bad";
  return ["deferred", "suppressed"].includes(status) ? "warn" : "off";
}
