// Audit logs, whose rows are chained by keyed hashes.
export { AuditLog, type AuditEvent, type AuditFilter, type AuditVerdict } from "./audit-log.ts";
export {
  createAuditMigrations,
  type AuditHeadRow,
  type AuditRow,
  type AuditTables,
} from "./tables.ts";
