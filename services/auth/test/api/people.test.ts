// Accounts, their names, changes and locks, in one process: starting PostgreSQL and loading the service take longer than most tests.
import "./accounts.ts";
import "./names.ts";
import "./changes.ts";
import "./lockout.ts";
import "./uniform.ts";
