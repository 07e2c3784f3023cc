// All tables of the service and their migrations, one history per part.
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

/** Version of the tables as a whole, recorded in backups: the number of migrations. */
export const DATA_FORMAT = HISTORIES.reduce((sum, { migrations }) => sum + migrations.length, 0);

/** Migrates all tables; several nodes may do so concurrently. */
export async function migrateAll(database: NotifyDatabase, nowMs: number): Promise<void> {
  for (const { name, migrations } of HISTORIES) await database.migrate(migrations, nowMs, name);
}
