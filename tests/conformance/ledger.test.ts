// Comparing outcomes with a ledger: a run of all cases, a run of chosen ones, and a rewrite.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { settleLedger, type Outcomes } from "./ledger.ts";

const KNOWN: Outcomes = {
  GetObject: { "returns a range": "passes", "returns a part": "fails for a reason" },
  PutObject: { "stores bytes": "passes" },
};

function makeLedger(t: TestContext): URL {
  const folder = mkdtempSync(join(tmpdir(), "platform-ledger-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "ledger.json");
  writeFileSync(path, JSON.stringify(KNOWN));
  return pathToFileURL(path);
}

/** Sets PLATFORM_LEDGER for one test. */
function setMode(t: TestContext, mode: string | undefined): void {
  const before = process.env["PLATFORM_LEDGER"];
  const set = (value: string | undefined): void => {
    if (value === undefined) delete process.env["PLATFORM_LEDGER"];
    else process.env["PLATFORM_LEDGER"] = value;
  };
  set(mode);
  t.after(() => set(before));
}

test("a run of chosen cases passes if they are as in the ledger, and fails on a regression", (t) => {
  setMode(t, undefined);
  const path = makeLedger(t);
  const settle = (outcome: string) =>
    settleLedger(path, { GetObject: { "returns a range": outcome } }, true);
  settle("passes");
  assert.throws(() => settle("500 instead of 206"), assert.AssertionError);
  assert.throws(() => settle("not run"), assert.AssertionError);
  const unknown = { GetObject: { "returns nothing": "passes" } };
  assert.throws(() => settleLedger(path, unknown, true), assert.AssertionError);
});

test("a run of all cases also fails if a case is missing or has improved without a note", (t) => {
  setMode(t, undefined);
  const path = makeLedger(t);
  settleLedger(path, structuredClone(KNOWN));
  const { PutObject: put, ...fewer } = KNOWN;
  assert.throws(() => settleLedger(path, fewer), assert.AssertionError);
  const better = { GetObject: { "returns a range": "passes", "returns a part": "passes" } };
  assert.throws(() => settleLedger(path, { ...better, PutObject: put }), assert.AssertionError);
});

test("PLATFORM_LEDGER=write stores the outcomes of all cases, never those of chosen ones", (t) => {
  setMode(t, "write");
  const path = makeLedger(t);
  const before = readFileSync(path, "utf8");
  const one = { PutObject: { "stores bytes": "passes" } };
  assert.throws(() => settleLedger(path, one, true), /needs a run of all cases/);
  assert.equal(readFileSync(path, "utf8"), before);
  settleLedger(path, one);
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), one);
});
