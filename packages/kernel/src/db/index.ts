// Databases: Kysely on SQLite or PostgreSQL, migrations, transactions, errors.
export {
  openDatabase,
  type Database,
  type DatabaseOptions,
  type TransactionOptions,
} from "./database.ts";
export {
  DatabaseError,
  isUniqueViolation,
  readDatabaseError,
  type DatabaseErrorInfo,
  type DatabaseErrorKind,
} from "./error.ts";
export { type ColumnTypes, type DatabaseKind, type Migration } from "./migration.ts";
