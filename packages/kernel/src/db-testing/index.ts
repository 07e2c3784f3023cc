// PostgreSQL for tests.
export {
  emptyDatabase,
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
  type PostgresDatabases,
} from "./cluster.ts";
export { endSharedPostgres, openPostgres } from "./shared.ts";
