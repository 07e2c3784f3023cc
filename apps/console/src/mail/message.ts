// Messages as the service reports them.
import type { StateKind } from "../view/state.tsx";

/** Permission that the operations of sending require. */
export const SEND = "notify:send";
/** Permission that all others require. */
export const MANAGE = "notify:manage";

/** A message and its deliveries. */
export interface SentMessage {
  message_id: string;
  status: string;
  channel: string;
  stream?: string;
  subject?: string;
  from: string;
  template: string | null;
  size_bytes: number;
  created_at: string;
  sensitive?: boolean;
  resent_from?: string | null;
  trace_id?: string;
  recipients: { address: string; status: string; detail?: string | null; attempts: number }[];
  events?: { type: string; at: string; detail?: string }[];
}

/** The shape of a state of a delivery. */
export function kindOf(status: string): StateKind {
  if (["sent", "delivered"].includes(status)) return "ok";
  if (["bounced", "failed"].includes(status)) return "bad";
  return ["deferred", "suppressed"].includes(status) ? "warn" : "off";
}
