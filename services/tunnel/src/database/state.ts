// The place of the service's data, for its backups.
import type { DatabaseState } from "@platform/kernel/database-backup";
import { DATA_FORMAT } from "./schema.ts";

/** Returns the place of the data. */
export function describeState(config: {
  data_dir: string;
  database_url?: string | undefined;
}): DatabaseState {
  return {
    service: "tunnel",
    dataFormat: DATA_FORMAT,
    dataDir: config.data_dir,
    databaseUrl: config.database_url,
  };
}
