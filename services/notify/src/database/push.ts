// Table of Web Push subscriptions.
import type { Migration } from "@platform/kernel/db";

/** A subscription of a browser. */
export interface PushSubscriptionRow {
  id: string;
  /** The client that registered it, and may send to it. */
  client: string;
  /** The user of the client to whom the browser belongs. */
  subscriber: string;
  /** URL of the push service; whoever has it can send, so that it is never shown. */
  endpoint: string;
  /** Key of the browser and its authentication secret, base64url (RFC 8291). */
  p256dh: string;
  auth: string;
  created_at: number;
  expires_at: number | null;
}

/** Tables of Web Push. */
export interface PushTables {
  notify_push_subscriptions: PushSubscriptionRow;
}

/** Migrations of this table. */
export const PUSH_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-push",
    statements: (t) => [
      `create table notify_push_subscriptions (
        id ${t.text} primary key, client ${t.text} not null, subscriber ${t.text} not null, endpoint ${t.text} not null,
        p256dh ${t.text} not null, auth ${t.text} not null, created_at ${t.integer} not null, expires_at ${t.integer},
        unique (client, endpoint))`,
      "create index notify_push_by_subscriber on notify_push_subscriptions (client, subscriber)",
      "create index notify_push_by_expiry on notify_push_subscriptions (expires_at) where expires_at is not null",
    ],
  },
];
