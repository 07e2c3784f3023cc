// Opens the service's database.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "@platform/kernel/db";
import type { Logger } from "@platform/kernel/log";
import type { NotifyDatabase, NotifyTables } from "./schema.ts";

/** Options of {@link openNotifyDatabase}. */
export interface OpenOptions {
  /** `postgres://…` or `sqlite:path`; undefined for a file in the data folder. */
  url: string | undefined;
  dataDir: string;
  acceptLoss: boolean;
  log: Logger;
}

/** Opens the database without migrating it. */
export function openNotifyDatabase({ url, dataDir, acceptLoss, log }: OpenOptions): NotifyDatabase {
  if (url === undefined) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return openDatabase<NotifyTables>({
    url: url ?? `sqlite:${join(dataDir, "notify.db")}`,
    service: "notify",
    sqlite: { processes: "one", acceptLoss },
    postgres: {
      onConnectionError: (error) => log.warn("database connection lost", { error }),
    },
  });
}
