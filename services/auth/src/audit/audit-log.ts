// The audit log of identity, whose events have the device of a request.
import {
  AuditLog as ChainedLog,
  type AuditEvent as Event,
  type AuditTables,
} from "@platform/kernel/audit";
import type { Database } from "@platform/kernel/db";
import type { Clock } from "@platform/kernel/time";
import { AUDIT_TABLE } from "../database/audit.ts";
import type { AuthDatabase } from "../database/schema.ts";
import { nameDevice } from "../session/device.ts";

/** An event. Text beyond 512 characters is cut off; `detail` contains no secrets. */
export interface AuditEvent extends Event {
  /** Header of the request; stored as the name of the device, `device` in `detail`. */
  userAgent?: string;
}

/** Writes and reads the log. Concurrent events share one transaction. */
export class AuditLog extends ChainedLog {
  /** `secret` keys the hashes: write access to the database is not enough to forge a chain. */
  constructor(database: AuthDatabase, clock: Clock, secret: Buffer) {
    // The log knows its tables by their names.
    const tables = database as unknown as Database<AuditTables>;
    super({ database: tables, table: AUDIT_TABLE, clock, secret });
  }

  /** Resolves when the event is stored. Rejects if it cannot be stored or too many events wait. */
  override record({ userAgent = "", ...event }: AuditEvent): Promise<void> {
    if (userAgent === "") return super.record(event);
    return super.record({ ...event, detail: { ...event.detail, device: nameDevice(userAgent) } });
  }
}
