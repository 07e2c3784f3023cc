// Messages and deliveries in memory, and outcomes of attempts.
import type { Channel, DeliveryStatus, Stream } from "./database/message.ts";
import type { TraceColumns } from "./database/trace.ts";

/** A message with its content, shared by its deliveries. */
export interface LoadedMessage {
  readonly id: string;
  readonly channel: Channel;
  readonly client: string;
  readonly stream: Stream;
  readonly template: string | null;
  /** Address of the From field, or of the sender of an SMS. */
  readonly sender: string;
  readonly subject: string;
  readonly isSensitive: boolean;
  readonly createdAt: number;
  /** The message is not sent after this time. */
  readonly expiresAt: number | undefined;
  readonly traceId: string;
  /** The trace of the request that sent it. */
  readonly trace: TraceColumns;
  /** JSON; null if empty. */
  readonly tags: string | null;
  readonly metadata: string | null;
  readonly content: Buffer;
}

/** A leased delivery to one recipient. */
export interface Delivery {
  readonly message: LoadedMessage;
  readonly position: number;
  readonly address: string;
  readonly domain: string;
  readonly queueClass: QueueClass;
  /** Number of earlier attempts. */
  readonly attempts: number;
  readonly fence: number;
  readonly leaseUntil: number;
  /** True if an earlier lease ended without an outcome, so that the recipient may have the message already. */
  readonly mayBeDuplicate: boolean;
  /** Names what differs from its checksum: the delivery must not be attempted. */
  readonly damage?: string;
}

/** Domain of all SMS in the queue; no domain of an address has a colon. */
export const SMS_DOMAIN = "sms:";

/** Domains of push messages in the queue: this prefix and the host of the push service. */
export const PUSH_DOMAIN_PREFIX = "push:";

/** Returns the channel to which a domain of the queue belongs. */
export function channelOf(domain: string): Channel {
  if (domain.startsWith(PUSH_DOMAIN_PREFIX)) return "push";
  return domain === SMS_DOMAIN ? "sms" : "email";
}

/** Classes of the queue: new transactional messages, new bulk messages, retries. */
export const QUEUE_CLASSES = [0, 1, 2] as const;

/** A class of the queue. */
export type QueueClass = (typeof QUEUE_CLASSES)[number];

/** The class of retries. */
export const RETRY_CLASS = 2;

/** Response of a relay to a message. */
export interface RelayReply {
  /** Host of the relay, `inbox`, or the name of a gateway. */
  relay: string;
  /** SMTP reply code; undefined if there was no reply. */
  code?: number | undefined;
  /** Enhanced status code (RFC 3463), such as `5.1.1`. */
  enhanced?: string | undefined;
  text: string;
  /** Id that a gateway gave to the message, for its receipts. */
  gatewayId?: string | undefined;
}

/**
 * Outcome of an attempt. `rejected` is permanent: by `recipient`, or because of the message or the sender. `deferred` is
 * temporary: by the `recipient`, or because the `relay` is unreachable or overloaded, which slows its destination.
 * With `mayHaveArrived` the connection broke after the content was sent and before the reply.
 */
export type Outcome =
  | { kind: "sent"; reply: RelayReply }
  | { kind: "rejected"; cause: "recipient" | "message"; reply: RelayReply }
  | {
      kind: "deferred";
      cause: "recipient" | "relay";
      reply: RelayReply;
      /** Delay that the relay requested, in ms. */
      retryAfterMs?: number | undefined;
      mayHaveArrived: boolean;
    };

/** The recorded result of an attempt. */
export interface DeliveryResult {
  delivery: Delivery;
  status: Extract<DeliveryStatus, "sent" | "deferred" | "bounced" | "failed" | "suppressed">;
  reply: RelayReply;
  /** Time of the next attempt; undefined if the delivery has ended. */
  dueAt: number | undefined;
  events: { type: string; detail: string }[];
}

/** A way to deliver messages. */
export interface Transport {
  /** Name of the destination that limits and pauses apply to. */
  destinationOf(domain: string): string;
  /** Attempts a delivery. Never rejects; `signal` aborts at the end of the attempt's time. */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<Outcome>;
}
