// Events that webhooks receive.
import type { TraceColumns } from "../database/trace.ts";

/** Types of events. */
export const WEBHOOK_EVENTS = [
  "message.sent",
  "message.delivered",
  "message.deferred",
  "message.bounced",
  "message.failed",
  "message.suppressed",
  "message.complained",
  "message.unsubscribed",
  "message.opened",
  "message.clicked",
  "bounce_rate.exceeded",
] as const;

/** A type of event. */
export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number];

export interface WebhookEvent {
  /** The trace that calls continue; that of the message. */
  trace?: TraceColumns | undefined;
  type: WebhookEventType;
  atMs: number;
  data: Readonly<Record<string, unknown>>;
}
