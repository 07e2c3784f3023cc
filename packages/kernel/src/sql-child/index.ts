// SQL of users: one SELECT or change at a time, in a child process with limits.
export { SqlChildren, type SqlChildrenOptions, type SqlOutcome } from "./sql-children.ts";
export { SqlError, type SqlErrorKind, type SqlLimitName } from "./sql-error.ts";
export type {
  SqlAnswer,
  SqlChanges,
  SqlColumn,
  SqlCut,
  SqlDatabase,
  SqlLimits,
  SqlQuestion,
  SqlTable,
  SqlValue,
  SqlView,
  SqlWrite,
} from "./question.ts";
