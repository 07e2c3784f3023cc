// What a suite's ledger is: the outcomes that were committed, which may only get better.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

/** Compares outcomes with the ledger in a file; under PLATFORM_LEDGER=write the file is written anew before. */
export function settleLedger(path: URL, current: object): void {
  if (process.env["PLATFORM_LEDGER"] === "write") {
    writeFileSync(path, `${JSON.stringify(current, undefined, 2)}\n`);
  }
  assert.deepEqual(current, JSON.parse(readFileSync(path, "utf8")));
}

/** Why a case failed, in one line. */
export function describeFailure(error: unknown): string {
  return (error as Error).message.split("\n").slice(0, 4).join(" ");
}
