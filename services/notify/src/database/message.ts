// Tables of messages: the message, its content, one delivery per recipient, events, idempotency keys.
import type { Migration } from "@platform/kernel/db";
import type { TraceColumns } from "./trace.ts";

/** Channels of messages. */
export const CHANNELS = ["email", "sms", "push"] as const;

/** Channel of a message. */
export type Channel = (typeof CHANNELS)[number];

/** Streams that clients may choose: unsubscribing and bulk limits concern `bulk` only. */
export const CLIENT_STREAMS = ["transactional", "bulk"] as const;

/** All streams; `report` has the reports that the service sends itself. */
export const STREAMS = [...CLIENT_STREAMS, "report"] as const;

/** Stream of a message. */
export type Stream = (typeof STREAMS)[number];

/** States of a delivery. */
export const DELIVERY_STATUSES = [
  "queued",
  "deferred",
  "sent",
  "bounced",
  "failed",
  "suppressed",
  "canceled",
] as const;

/** State of a delivery. */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Type of a bounce: `hard` if the address does not exist, which suppresses it. */
export type BounceType = "hard" | "soft";

/** A message. Times are in ms; booleans are 0 or 1. */
export interface MessageRow extends TraceColumns {
  /** A UUID version 7: sorts by time. */
  id: string;
  channel: Channel;
  /** The sender of the request: "" for the operator, else the subject of the token. */
  client: string;
  stream: Stream;
  sender: string;
  subject: string;
  template: string | null;
  /** Value of the Message-ID field. */
  header_id: string;
  /** JSON arrays and objects; null if empty. */
  tags: string | null;
  metadata: string | null;
  size_bytes: number;
  sensitive: number;
  created_at: number;
  send_at: number | null;
  /** The message is not sent after this time. */
  expires_at: number | null;
  trace_id: string;
  /** Id of the message whose content this one repeats. */
  resent_from: string | null;
}

/** The content in the form in which it is sent, apart from the other columns to keep their pages small. */
export interface BodyRow {
  message_id: string;
  content: Uint8Array;
  /** JSON of the template's variables; null without a template, or if they are large. */
  variables: string | null;
  /** JSON array of the warnings of rendering; null if there are none. */
  warnings: string | null;
  /** Content is erased after this time. */
  expires_at: number;
  /** See `checksum.ts`; null in rows of earlier versions. */
  checksum: number | null;
}

/**
 * A delivery to one recipient. `due_at` is the time of the next attempt; while it is leased, the end of the lease;
 * null when the delivery has ended.
 */
export interface DeliveryRow {
  message_id: string;
  position: number;
  kind: "to" | "cc" | "bcc";
  address: string;
  domain: string;
  client: string;
  /** Queue class: 0 new transactional, 1 new bulk, 2 retries. */
  class: number;
  status: DeliveryStatus;
  /** Number of finished attempts. */
  attempts: number;
  /** Number of leases; an outcome is recorded only if no other lease followed. */
  fence: number;
  due_at: number | null;
  leased: number;
  /** SMTP reply code, enhanced status code (RFC 3463) and text of the last attempt. */
  code: number | null;
  enhanced: string | null;
  detail: string | null;
  relay: string | null;
  /** Null unless it bounced, and for bounces of earlier versions. */
  bounce_type: BounceType | null;
  updated_at: number;
  /** See `checksum.ts`; null in rows of earlier versions. */
  checksum: number | null;
}

/** An event of a message that its row and its deliveries do not show. */
interface EventRow {
  id: number;
  message_id: string;
  position: number | null;
  type: string;
  at: number;
  detail: string | null;
  /** Unique within the message, for events that may happen once. */
  event_key?: string | null;
}

/** The id that a gateway gave to a delivery, for its receipts. */
interface GatewayIdRow {
  gateway_id: string;
  message_id: string;
  position: number;
  created_at: number;
}

/** A used idempotency key and, once it is known, the answer. */
export interface IdempotencyRow {
  client: string;
  key: string;
  request_hash: string;
  message_id: string;
  status: number | null;
  answer: string | null;
  created_at: number;
}

/** Tables of messages. */
export interface MessageTables {
  notify_messages: MessageRow;
  notify_bodies: BodyRow;
  notify_deliveries: DeliveryRow;
  notify_events: Omit<EventRow, "id"> & { id?: number };
  notify_idempotency: IdempotencyRow;
  notify_gateway_ids: GatewayIdRow;
}

/** Migrations of these tables. */
export const MESSAGE_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-messages",
    statements: (t) => [
      `create table notify_messages (
        id ${t.text} primary key, channel ${t.text} not null, client ${t.text} not null, stream ${t.text} not null,
        sender ${t.text} not null, subject ${t.text} not null, template ${t.text}, header_id ${t.text} not null,
        tags ${t.text}, metadata ${t.text}, size_bytes ${t.integer} not null, sensitive ${t.integer} not null,
        created_at ${t.integer} not null, send_at ${t.integer}, trace_id ${t.text} not null)`,
      "create index notify_messages_by_client on notify_messages (client, id)",
      `create table notify_bodies (message_id ${t.text} primary key, content ${t.bytes} not null, expires_at ${t.integer} not null)`,
      "create index notify_bodies_by_expiry on notify_bodies (expires_at)",
      `create table notify_deliveries (
        message_id ${t.text} not null, position ${t.integer} not null, kind ${t.text} not null,
        address ${t.text} not null, domain ${t.text} not null, client ${t.text} not null, class ${t.integer} not null,
        status ${t.text} not null, attempts ${t.integer} not null, fence ${t.integer} not null,
        due_at ${t.integer}, leased ${t.integer} not null,
        code ${t.integer}, enhanced ${t.text}, detail ${t.text}, relay ${t.text}, updated_at ${t.integer} not null,
        primary key (message_id, position))`,
      "create index notify_deliveries_due on notify_deliveries (class, client, domain, due_at) where due_at is not null",
      "create index notify_deliveries_by_address on notify_deliveries (address, message_id)",
      `create table notify_events (
        id ${t.serialKey}, message_id ${t.text} not null, position ${t.integer}, type ${t.text} not null,
        at ${t.integer} not null, detail ${t.text})`,
      "create index notify_events_by_message on notify_events (message_id, id)",
      `create table notify_idempotency (
        client ${t.text} not null, key ${t.text} not null, request_hash ${t.text} not null, message_id ${t.text} not null,
        status ${t.integer}, answer ${t.text}, created_at ${t.integer} not null, primary key (client, key))`,
      "create index notify_idempotency_by_time on notify_idempotency (created_at)",
    ],
  },
  {
    id: "0002-events-once",
    statements: (t) => [
      `alter table notify_events add column event_key ${t.text}`,
      "create unique index notify_events_once on notify_events (message_id, event_key) where event_key is not null",
    ],
  },
  {
    id: "0003-expiry",
    statements: (t) => [`alter table notify_messages add column expires_at ${t.integer}`],
  },
  {
    id: "0004-gateway-ids",
    statements: (t) => [
      `create table notify_gateway_ids (
        gateway_id ${t.text} primary key, message_id ${t.text} not null, position ${t.integer} not null,
        created_at ${t.integer} not null)`,
      "create index notify_gateway_ids_by_message on notify_gateway_ids (message_id)",
    ],
  },
  {
    id: "0005-resent",
    statements: (t) => [
      `alter table notify_messages add column resent_from ${t.text}`,
      `alter table notify_bodies add column variables ${t.text}`,
      `alter table notify_bodies add column warnings ${t.text}`,
    ],
  },
  {
    id: "0006-trace",
    statements: (t) => [
      `alter table notify_messages add column traceparent ${t.text}`,
      `alter table notify_messages add column tracestate ${t.text}`,
    ],
  },
  {
    id: "0007-bounce-type",
    statements: (t) => [`alter table notify_deliveries add column bounce_type ${t.text}`],
  },
  {
    id: "0008-checksums",
    statements: (t) => [
      `alter table notify_bodies add column checksum ${t.integer}`,
      `alter table notify_deliveries add column checksum ${t.integer}`,
    ],
  },
];
