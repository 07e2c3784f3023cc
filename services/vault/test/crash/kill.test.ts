// A writer that is killed at any moment loses nothing that it has acknowledged. VAULT_KILL_ROUNDS=200 runs the long form.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "../../src/store.ts";
import { makeFolder } from "../store/fixture.ts";
import { judge, parseHistory, type HistoryLine } from "./history.ts";

const rounds = Number(process.env["VAULT_KILL_ROUNDS"] ?? 6);

test(`kill -9 in the midst of random work, ${rounds} times: everything acknowledged is there and whole`, async (context) => {
  const dataDir = makeFolder(context);
  let base = new Map<string, string>();
  let acknowledged = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const lines = await runUntilKilled(dataDir, round, 30 + ((round * 37) % 300));
    acknowledged += lines.filter((line) => line.at === "end" && line.code === undefined).length;
    const store = await openStore({ dataDir, reserveBytes: 0 });
    const { wrong, state } = await judge(store, lines, base);
    await store.close();
    assert.deepEqual(wrong, [], `round ${round}`);
    assert.deepEqual(readdirSync(join(dataDir, "staging")), []);
    base = state;
  }
  context.diagnostic(`${acknowledged} operations were acknowledged`);
  assert.ok(acknowledged > rounds);
});

async function runUntilKilled(
  dataDir: string,
  seed: number,
  afterMs: number,
): Promise<HistoryLine[]> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "workload.ts"), dataDir, `${seed}`],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    if (chunks.length === 0) setTimeout(() => child.kill("SIGKILL"), afterMs);
    chunks.push(chunk);
  });
  await new Promise((resolve) => child.once("close", resolve));
  return parseHistory(Buffer.concat(chunks).toString());
}
