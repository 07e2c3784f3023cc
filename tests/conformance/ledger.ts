// Ledgers of conformance suites: committed outcomes, which may only improve.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";

/** Outcomes of a suite: an entry per case, or groups of them. */
export interface Outcomes {
  [name: string]: unknown;
}

/**
 * Compares outcomes with the ledger in a file; with PLATFORM_LEDGER=write the file is written first. A `partial` run is
 * compared only with the entries of its cases, and never written.
 */
export function settleLedger(path: URL, current: Outcomes, partial = false): void {
  const write = process.env["PLATFORM_LEDGER"] === "write";
  if (write) assert.ok(!partial, "PLATFORM_LEDGER=write needs a run of all cases");
  if (write) writeFileSync(path, `${JSON.stringify(current, undefined, 2)}\n`);
  const ledger = JSON.parse(readFileSync(path, "utf8")) as Outcomes;
  assert.deepEqual(current, partial ? pickEntries(ledger, current) : ledger);
}

/** Selects the entries of the ledger that are in `current`, at all levels. */
function pickEntries(ledger: Outcomes, current: Outcomes): Outcomes {
  const picked: Outcomes = {};
  for (const [name, outcome] of Object.entries(current)) {
    const known = ledger[name];
    picked[name] = isGroup(outcome) && isGroup(known) ? pickEntries(known, outcome) : known;
  }
  return picked;
}

function isGroup(value: unknown): value is Outcomes {
  return typeof value === "object" && value !== null;
}

/** Describes the failure of a case in one line. */
export function describeFailure(error: unknown): string {
  return (error as Error).message.split("\n").slice(0, 4).join(" ");
}
