// Tables of the audit log.
import { createAuditMigrations, type AuditHeadRow, type AuditRow } from "@platform/kernel/audit";

export const AUDIT_TABLE = "auth_audit";

export interface AuditTables {
  auth_audit: AuditRow;
  auth_audit_head: AuditHeadRow;
}

/** Migrations of the audit tables. */
export const AUDIT_MIGRATIONS = createAuditMigrations(AUDIT_TABLE);
