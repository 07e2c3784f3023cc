// A process killed during writes: acknowledged writes are present and the database opens normally.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import { openDatabase } from "@platform/kernel/db";

const WRITER = fileURLToPath(new URL("fixtures/writer.ts", import.meta.url));

test("all writes acknowledged before kill -9 are present afterwards", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "kernel-crash-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  for (let round = 1; round <= 2; round += 1) {
    const file = join(folder, `${round}.db`);
    const writer = spawn(process.execPath, [WRITER, file], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    writer.stdout.setEncoding("utf8");
    for await (const chunk of writer.stdout) {
      text += String(chunk);
      if (text.split("\n").length > 60 * round) writer.kill("SIGKILL");
    }
    const acknowledged = text.split("\n").slice(0, -1).map(Number);
    assert.ok(acknowledged.length >= 60);
    const database = openDatabase<{ numbers: { n: number } }>({
      url: `sqlite:${file}`,
      service: "writer",
    });
    const rows = await database.db.selectFrom("numbers").select("n").execute();
    const stored = new Set(rows.map((row) => row.n));
    for (const n of acknowledged) assert.ok(stored.has(n), `${n} was lost`);
    const { rows: checks } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(
      database.db,
    );
    assert.deepEqual(checks, [{ integrity_check: "ok" }]);
    await database.close();
  }
});
