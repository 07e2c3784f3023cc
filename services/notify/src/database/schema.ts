// All tables of the service and their migrations, one history per part.
import { randomBytes } from "node:crypto";
import type { Database, Migration } from "@platform/kernel/db";
import { DMARC_MIGRATIONS, type DmarcTables } from "./dmarc.ts";
import { DOMAIN_MIGRATIONS, type DomainTables } from "./domain.ts";
import { INBOUND_MIGRATIONS, type InboundTables } from "./inbound.ts";
import { INBOX_MIGRATIONS, type InboxTables } from "./inbox.ts";
import { MESSAGE_MIGRATIONS, type MessageTables } from "./message.ts";
import { PUSH_MIGRATIONS, type PushTables } from "./push.ts";
import { SETTING_MIGRATIONS, type SettingTables } from "./setting.ts";
import { SUPPRESSION_MIGRATIONS, type SuppressionTables } from "./suppression.ts";
import { TEMPLATE_MIGRATIONS, type TemplateTables } from "./template.ts";
import { WEBHOOK_MIGRATIONS, type WebhookTables } from "./webhook.ts";

/** All tables. */
export type NotifyTables = MessageTables &
  SuppressionTables &
  InboxTables &
  TemplateTables &
  WebhookTables &
  InboundTables &
  DomainTables &
  DmarcTables &
  PushTables &
  SettingTables;

/** The service's database. */
export type NotifyDatabase = Database<NotifyTables>;

const KEY_BYTES = 32;

const HISTORIES: readonly { name: string; migrations: readonly Migration[] }[] = [
  { name: "message", migrations: MESSAGE_MIGRATIONS },
  { name: "suppression", migrations: SUPPRESSION_MIGRATIONS },
  { name: "inbox", migrations: INBOX_MIGRATIONS },
  { name: "template", migrations: TEMPLATE_MIGRATIONS },
  { name: "webhook", migrations: WEBHOOK_MIGRATIONS },
  { name: "dmarc", migrations: DMARC_MIGRATIONS },
  { name: "domain", migrations: DOMAIN_MIGRATIONS },
  { name: "inbound", migrations: INBOUND_MIGRATIONS },
  { name: "push", migrations: PUSH_MIGRATIONS },
  { name: "setting", migrations: SETTING_MIGRATIONS },
];

/** Migrates all tables; several nodes may do so concurrently. */
export async function migrateAll(database: NotifyDatabase, nowMs: number): Promise<void> {
  for (const { name, migrations } of HISTORIES) await database.migrate(migrations, nowMs, name);
}

/** Returns a random key of 256 bits, which is generated once for all nodes. */
export async function readKey(database: NotifyDatabase, name: string): Promise<Buffer> {
  const create = (): string => randomBytes(KEY_BYTES).toString("base64");
  return Buffer.from(await readSetting(database, name, create), "base64");
}

// The first caller's `create` decides the value for all nodes.
async function readSetting(
  { db }: NotifyDatabase,
  name: string,
  create: () => string,
): Promise<string> {
  await db
    .insertInto("notify_settings")
    .values({ name, value: create() })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const { value } = await db
    .selectFrom("notify_settings")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return value;
}
