// Databases for the tests: each suite runs on SQLite and on PostgreSQL where that is installed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";

/** Runs the suite on each database; `makeUrl` gives the URL of an empty one. */
export function onEachDatabase(suite: (makeUrl: () => Promise<string>) => void): void {
  describe("on sqlite", () => {
    const folder = mkdtempSync(join(tmpdir(), "auth-test-"));
    let files = 0;
    after(() => rmSync(folder, { recursive: true, force: true }));
    suite(async () => `sqlite:${join(folder, `${(files += 1)}.db`)}`);
  });
  describe("on postgres", { skip: findPostgresSkip() ?? false }, () => {
    let cluster: PostgresCluster | undefined;
    before(async () => {
      cluster = await startPostgresCluster();
    });
    after(() => cluster?.stop());
    suite(async () => cluster!.createDatabase());
  });
}
