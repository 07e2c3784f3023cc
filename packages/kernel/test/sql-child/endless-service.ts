// A service with a statement that would run for years.
import { SqlChildren } from "../../src/sql-child/index.ts";

const pool = new SqlChildren({
  children: 1,
  limits: {
    rows: 1,
    bytes: 1_000,
    timeMs: 600_000,
    memoryBytes: 16 * 1024 ** 2,
    valueBytes: 1_000,
    sqlBytes: 1_000,
  },
});
const rows = Array.from({ length: 2_000 }, (_, index) => [index]);
const table = {
  name: "n",
  columns: ["x"],
  rows: () => {
    setTimeout(() => process.stdout.write("runs\n"), 200);
    return [rows];
  },
};
await pool.ask(
  { tenant: "a", sql: "select count(*) from n a, n b, n c, n d where a.x + b.x + c.x + d.x = -1" },
  () => ({ database: { kind: "tables", tables: [table] } }),
);
