// The relay that administrators set through the API, sealed in the database. Keys of the configuration take precedence.
import { z } from "zod";
import type { SecretBox } from "@platform/kernel/secrets";
import type { NotifyConfig } from "../config.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { toPlace } from "../database/secrets.ts";

/** Keys that can be set here, as in the configuration file. */
export const RELAY_KEYS = ["smtp.host", "smtp.port", "smtp.user", "smtp.pass"] as const;

/** A key of a relay. */
export type RelayKey = (typeof RELAY_KEYS)[number];

const storedRelay = z.strictObject({
  host: z.string(),
  port: z.int(),
  user: z.string().optional(),
  pass: z.string().optional(),
  setBy: z.string(),
  setAtMs: z.int(),
});

/** A relay with the person who set it. Credentials are for this host and port alone. */
export type StoredRelay = z.infer<typeof storedRelay>;

const NAME = "relay";
const PLACE = toPlace("notify_settings.value", NAME);

/** Reads the stored relay; undefined if none is set. Throws if it was changed or sealed with a key that is missing. */
export async function readStoredRelay(
  { db }: NotifyDatabase,
  box: SecretBox,
): Promise<StoredRelay | undefined> {
  const row = await db
    .selectFrom("notify_settings")
    .select("value")
    .where("name", "=", NAME)
    .executeTakeFirst();
  return row === undefined ? undefined : storedRelay.parse(JSON.parse(box.open(row.value, PLACE)));
}

/** Stores the relay in place of the former one, or removes it. */
export async function writeStoredRelay(
  { db }: NotifyDatabase,
  box: SecretBox,
  relay: StoredRelay | undefined,
): Promise<void> {
  if (relay === undefined) {
    await db.deleteFrom("notify_settings").where("name", "=", NAME).execute();
    return;
  }
  const value = box.seal(JSON.stringify(relay), PLACE);
  await db
    .insertInto("notify_settings")
    .values({ name: NAME, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}

/** Places in the configuration of the keys that it sets, such as `mail.json:3:5`, by key. */
export type HeldKeys = ReadonlyMap<string, string>;

const DEFAULT_SOURCE = "default";

/** Finds the keys that the configuration sets. Without `sources`, those that differ from an empty configuration. */
export function findHeldKeys(
  config: NotifyConfig,
  sources: ReadonlyMap<string, string> | undefined,
): HeldKeys {
  const held = new Map<string, string>();
  for (const key of [...RELAY_KEYS, "smtp.relays", "smtp.mode"] as const) {
    const source = sources?.get(key) ?? guessSource(config, key);
    if (source !== DEFAULT_SOURCE) held.set(key, source);
  }
  return held;
}

function guessSource(config: NotifyConfig, key: RelayKey | "smtp.relays" | "smtp.mode"): string {
  const value = config[key];
  const isDefault =
    value === undefined ||
    (key === "smtp.mode" && value === "auto") ||
    (key === "smtp.port" && config["smtp.host"] === undefined);
  return isDefault ? DEFAULT_SOURCE : "the configuration";
}

/** Returns the configuration with the stored relay where the configuration itself has no value. */
export function applyStoredRelay(
  config: NotifyConfig,
  held: HeldKeys,
  stored: StoredRelay | undefined,
): NotifyConfig {
  if (stored === undefined || held.has("smtp.relays")) return config;
  const host = held.has("smtp.host") ? config["smtp.host"] : stored.host;
  const port = held.has("smtp.port") ? config["smtp.port"] : stored.port;
  // Credentials never reach another server than the one for which they were given.
  const isSame = host === stored.host && port === stored.port;
  const user = held.has("smtp.user") ? config["smtp.user"] : isSame ? stored.user : undefined;
  const isUser = isSame && user === stored.user;
  const pass = held.has("smtp.pass") ? config["smtp.pass"] : isUser ? stored.pass : undefined;
  return {
    ...config,
    "smtp.host": host,
    "smtp.port": port,
    "smtp.user": user,
    "smtp.pass": pass,
  };
}
