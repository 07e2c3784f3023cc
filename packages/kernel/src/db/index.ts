// Databases: Kysely on SQLite or PostgreSQL, migrations, transactions, errors.
export { openDatabase, type Database } from "./database.ts";
export { dumpDatabase, loadDump } from "./dump.ts";
export { DatabaseError, isUniqueViolation, readDatabaseError } from "./error.ts";
export { readHistory, writeHistory, type AppliedMigration } from "./history.ts";
export { checksumMigration, type DatabaseKind, type Migration } from "./migration.ts";
