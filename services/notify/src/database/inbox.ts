// Table of the development inbox.
import type { Migration } from "@platform/kernel/db";
import type { Channel } from "./message.ts";

/** A message in the inbox. */
export interface InboxRow {
  id: number;
  message_id: string;
  channel: Channel;
  sender: string;
  /** JSON array of the recipients of the envelope. */
  recipients: string;
  subject: string;
  content: Uint8Array;
  size_bytes: number;
  received_at: number;
  expires_at: number;
  /** See `checksum.ts`; null in rows of earlier versions. */
  checksum: number | null;
}

/** Tables of the inbox. */
export interface InboxTables {
  notify_inbox: Omit<InboxRow, "id"> & { id?: number };
}

/** Migrations of this table. */
export const INBOX_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-inbox",
    statements: (t) => [
      `create table notify_inbox (
        id ${t.serialKey}, message_id ${t.text} not null unique, channel ${t.text} not null, sender ${t.text} not null,
        recipients ${t.text} not null, subject ${t.text} not null, content ${t.bytes} not null,
        size_bytes ${t.integer} not null, received_at ${t.integer} not null, expires_at ${t.integer} not null)`,
      "create index notify_inbox_by_expiry on notify_inbox (expires_at)",
    ],
  },
  {
    id: "0002-checksums",
    statements: (t) => [`alter table notify_inbox add column checksum ${t.integer}`],
  },
];
