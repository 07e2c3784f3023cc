// Backups of the relay: its database.
import {
  createBackupRoute,
  takeDatabaseSnapshot,
  type DatabaseState,
} from "@platform/kernel/backup";
import type { ApiRoute } from "@platform/kernel/http";
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { VERSION } from "../config.ts";
import type { TunnelDatabase } from "../database/schema.ts";

/** Options of {@link createRelayBackupRoute}. */
export interface RelayBackupOptions {
  database: TunnelDatabase;
  state: DatabaseState;
  /** `backup_token` of the configuration. */
  token: string | undefined;
  stopping: AbortSignal;
  clock: Clock;
  metrics: MetricRegistry;
}

/** Creates the operation that sends a backup. */
export function createRelayBackupRoute({
  database,
  state,
  ...options
}: RelayBackupOptions): ApiRoute {
  return createBackupRoute({
    ...options,
    service: state.service,
    version: VERSION,
    dataFormat: state.dataFormat,
    takeSnapshot: () => takeDatabaseSnapshot(state, database),
  });
}
