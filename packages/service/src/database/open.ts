// Opening of databases: loaded with the first database that is opened. Its modules take a third of the time that a service
// needs to start, and many services have no database.
export { openDatabase } from "@platform/kernel/db";
export { CompiledQuery } from "kysely";
export { becomeFirst } from "./first-process.ts";
export { adoptMigrations, refuseRenamed } from "./renamed.ts";
