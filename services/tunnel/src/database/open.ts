// Opens the relay's database.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "@platform/kernel/db";
import type { Logger } from "@platform/kernel/log";
import type { TunnelDatabase, TunnelTables } from "./schema.ts";

/** Options of {@link openRelayDatabase}. */
export interface OpenOptions {
  /** `postgres://…` or `sqlite:path`; undefined for a file in the data folder. */
  url: string | undefined;
  dataDir: string;
  acceptLoss: boolean;
  log: Logger;
}

/** Opens the database without migrating it. */
export function openRelayDatabase({ url, dataDir, acceptLoss, log }: OpenOptions): TunnelDatabase {
  if (url === undefined) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return openDatabase<TunnelTables>({
    url: url ?? `sqlite:${join(dataDir, "tunnel.db")}`,
    service: "tunnel",
    sqlite: { processes: "one", acceptLoss },
    postgres: {
      onConnectionError: (error) => log.warn("database connection lost", { error }),
    },
  });
}
