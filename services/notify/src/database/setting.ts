// Table of values that the service generates once, such as keys.
import type { Migration } from "@platform/kernel/db";

/** A generated value. */
interface SettingRow {
  name: string;
  /** Sealed. */
  value: string;
}

/** Tables of settings. */
export interface SettingTables {
  notify_settings: SettingRow;
}

/** Migrations of this table. */
export const SETTING_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-settings",
    statements: (t) => [
      `create table notify_settings (name ${t.text} primary key, value ${t.text} not null)`,
    ],
  },
];
