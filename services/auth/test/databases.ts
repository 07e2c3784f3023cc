// Databases for tests: each suite runs on SQLite, and on PostgreSQL if it is installed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe } from "node:test";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";

/** One for all suites of a process. */
let cluster: Promise<PostgresCluster> | undefined;
// Suites have closed their databases by then.
after(async () => (await cluster)?.stop());

/** Runs the suite on each database; `makeUrl` returns the URL of an empty one. */
export function onEachDatabase(
  suite: (makeUrl: () => Promise<string>, kind: "sqlite" | "postgres") => void,
): void {
  describe("on sqlite", () => {
    const folder = mkdtempSync(join(tmpdir(), "auth-test-"));
    let files = 0;
    suite(async () => `sqlite:${join(folder, `${(files += 1)}.db`)}`, "sqlite");
    after(() => rmSync(folder, { recursive: true, force: true }));
  });
  describe("on postgres", { skip: findPostgresSkip() ?? false }, () => {
    suite(async () => {
      cluster ??= startPostgresCluster();
      return (await cluster).createDatabase();
    }, "postgres");
  });
}
