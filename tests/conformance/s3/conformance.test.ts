// Runs all cases and compares the outcomes with the ledger, which may only improve. PLATFORM_LEDGER=write rewrites it;
// PLATFORM_CASES=text runs the cases whose names contain the text and compares those.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { describeFailure, settleLedger } from "../ledger.ts";
import { setScene, type Case } from "./case.ts";
import { stageVault, type VaultStage } from "./stage.ts";

const PASSES = "passes";

/** By operation and title: `passes`, or the reason of the failure. */
type Ledger = Record<string, Record<string, string>>;

const CONCURRENCY = 8;
const chosen = process.env["PLATFORM_CASES"];
const cases = (await readCases()).filter(
  ({ operation, title }) => chosen === undefined || `${operation}: ${title}`.includes(chosen),
);
const ledgerUrl = new URL("ledger.json", import.meta.url);
const known = JSON.parse(readFileSync(ledgerUrl, "utf8")) as Ledger;
const ledger: Ledger = {};

let stage: VaultStage;
before(async () => {
  stage = await stageVault();
});
after(() => stage[Symbol.asyncDispose]());

describe("the object API", { concurrency: CONCURRENCY }, () => {
  for (const one of cases) {
    const outcomes = (ledger[one.operation] ??= {});
    if (one.title in outcomes) throw new Error(`${one.operation}: ${one.title} is there twice`);
    outcomes[one.title] = "not run";
    test(`${one.operation}: ${one.title}`, async (t) => {
      const reason = await runCase(one);
      outcomes[one.title] = reason === undefined ? PASSES : keepReason(one, reason);
      if (reason !== undefined) t.diagnostic(`${one.operation}: ${one.title}: ${reason}`);
    });
  }
});

test("nothing has got worse than the ledger says", () => {
  assert.ok(cases.length > 0, `PLATFORM_CASES: no case has "${chosen}" in its name`);
  settleLedger(ledgerUrl, ledger, chosen !== undefined);
});

/** Returns the ledger's text of a case that already fails: reasons contain ids and times, which differ between runs. */
function keepReason({ operation, title }: Case, reason: string): string {
  const before = known[operation]?.[title];
  return before === undefined || before === PASSES ? reason : before;
}

/** Returns the reason of a failure. */
async function runCase(one: Case): Promise<string | undefined> {
  try {
    await one.run(await setScene(stage));
    return undefined;
  } catch (error) {
    return describeFailure(error);
  }
}

async function readCases(): Promise<Case[]> {
  const folders = readdirSync(import.meta.dirname, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const modules = await Promise.all(
    folders.map((folder) => import(`./${folder}/cases.ts`) as Promise<{ cases: readonly Case[] }>),
  );
  return modules.flatMap((module) => module.cases);
}
