// Secrets in the database are sealed: with configured keys, or on SQLite with the key of a file next to the database.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { sql } from "kysely";
import {
  createSecretBox,
  loadSecretFile,
  nameKeysVariable,
  parseEncryptionKeys,
  type SecretBox,
} from "@platform/kernel/secrets";
import type { NotifyDatabase } from "./schema.ts";

/** Options of {@link openSecretBox}. */
export interface SecretBoxOptions {
  /** Configured keys; the first seals, all open. */
  keys: string | undefined;
  dataDir: string;
}

/** Tables and columns with sealed text. */
type SealedPlace =
  | "notify_settings.value"
  | "notify_dkim_keys.private_key"
  | "notify_webhooks.secret"
  | "notify_inbound_rules.secret";

interface SealedColumn {
  table: string;
  column: string;
  place: SealedPlace;
  /** SQL expression of the row's id. */
  row: string;
}

/** File of the data folder with the key that seals the secrets, unless keys are configured. */
export const SECRETS_FILE = "secrets.json";

const SERVICE = "notify";
const KEY_BYTES = 32;
const SEALED = /^v1\./;
// A rotated secret moves to the other column as it is, so both have the same place.
const COLUMNS: readonly SealedColumn[] = [
  { table: "notify_settings", column: "value", place: "notify_settings.value", row: "name" },
  {
    table: "notify_dkim_keys",
    column: "private_key",
    place: "notify_dkim_keys.private_key",
    row: "domain || '/' || selector",
  },
  { table: "notify_webhooks", column: "secret", place: "notify_webhooks.secret", row: "id" },
  {
    table: "notify_webhooks",
    column: "previous_secret",
    place: "notify_webhooks.secret",
    row: "id",
  },
  {
    table: "notify_inbound_rules",
    column: "secret",
    place: "notify_inbound_rules.secret",
    row: "id",
  },
  {
    table: "notify_inbound_rules",
    column: "previous_secret",
    place: "notify_inbound_rules.secret",
    row: "id",
  },
];

/** Returns the place of a sealed text: it cannot be opened in another one. */
export function toPlace(place: SealedPlace, row: string): string {
  return `${place}.${row}`;
}

/**
 * Opens the box of the database, and seals the rows that earlier versions left open or that were sealed with an older key.
 * Throws if the key that sealed existing rows is missing: another one is never generated in its place.
 */
export async function openSecretBox(
  database: NotifyDatabase,
  options: SecretBoxOptions,
): Promise<SecretBox> {
  const isNeeded = (await readColumn(database, COLUMNS[0]!)).some(({ text }) => SEALED.test(text));
  try {
    const box = createSecretBox(SERVICE, loadKeys(database, options, isNeeded));
    for (const column of COLUMNS) await sealColumn(database, box, column);
    return box;
  } catch (cause) {
    if (!isNeeded || !(cause instanceof Error)) throw cause;
    throw new Error(
      `${cause.message}. DKIM keys, webhook secrets and the key of links in sent mail cannot be read: restore ${SECRETS_FILE} from the backup of the database, or set ${nameKeysVariable(SERVICE)} to the keys that sealed them. If they are lost, see "Secrets" in the README of mail.`,
      { cause },
    );
  }
}

/** Returns a random key of 256 bits, which is generated once for all nodes, and stored sealed. */
export async function readKey(
  database: NotifyDatabase,
  box: SecretBox,
  name: string,
): Promise<Buffer> {
  const place = toPlace("notify_settings.value", name);
  const create = (): string => box.seal(randomBytes(KEY_BYTES).toString("base64"), place);
  return Buffer.from(box.open(await readSetting(database, name, create), place), "base64");
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

function loadKeys(
  { kind }: NotifyDatabase,
  { keys, dataDir }: SecretBoxOptions,
  isNeeded: boolean,
): Buffer[] {
  if (keys !== undefined) return parseEncryptionKeys(SERVICE, keys);
  if (kind === "postgres") {
    throw new Error(
      `${nameKeysVariable(SERVICE)} is required on PostgreSQL, with the same value on every node`,
    );
  }
  const { encryption } = loadSecretFile(join(dataDir, SECRETS_FILE), ["encryption"], isNeeded);
  return parseEncryptionKeys(SERVICE, encryption);
}

// Secrets are random, so that the old text identifies the row.
async function sealColumn(
  database: NotifyDatabase,
  box: SecretBox,
  column: SealedColumn,
): Promise<void> {
  for (const { row, text } of await readColumn(database, column)) {
    const place = toPlace(column.place, row);
    const opened = SEALED.test(text) ? box.open(text, place) : text;
    if (!box.isStale(text)) continue;
    const name = sql.ref(column.column);
    const sealed = box.seal(opened, place);
    await sql`update ${sql.table(column.table)} set ${name} = ${sealed} where ${name} = ${text}`.execute(
      database.db,
    );
  }
}

async function readColumn(
  { db }: NotifyDatabase,
  { table, column, row }: SealedColumn,
): Promise<{ row: string; text: string }[]> {
  const name = sql.ref(column);
  const { rows } = await sql<{
    row: string;
    text: string;
  }>`select ${sql.raw(row)} as row, ${name} as text from ${sql.table(table)} where ${name} is not null`.execute(
    db,
  );
  return rows;
}
