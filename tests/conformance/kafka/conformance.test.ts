// Runs all cases in all versions and compares the outcomes with the ledger, which may only improve.
// PLATFORM_LEDGER=write rewrites the ledger.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { KafkaStage } from "../../../services/pulse/test/kafka/stage.ts";
import * as messages from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import { describeFailure, settleLedger } from "../ledger.ts";
import { aclCases, tenantUser } from "./acls.ts";
import { administrationCases } from "./administration.ts";
import { setScene, type Case } from "./case.ts";
import { groupCases } from "./groups.ts";
import { membershipCases } from "./membership.ts";
import { readingCases } from "./reading.ts";
import { recordCases } from "./records.ts";
import { versionCases } from "./versions.ts";
import { writingCases } from "./writing.ts";

/** By request and title: the versions that pass, and those that fail with the reason. */
type Ledger = Record<string, { passes: string; fails?: Record<string, string> }>;

const cases: readonly Case[] = [
  ...versionCases,
  ...administrationCases,
  ...recordCases,
  ...writingCases,
  ...readingCases,
  ...groupCases,
  ...membershipCases,
  ...aclCases,
];
const outcomes = new Map<string, Map<number, string | undefined>>();

let stage: KafkaStage;
let names = 0;

before(async () => {
  // Durability after a power failure is tested elsewhere.
  stage = await KafkaStage.open({
    groupLimits: { initialDelayMs: 1 },
    sync: { kind: "os" },
    users: [tenantUser],
  });
});
after(() => stage[Symbol.asyncDispose]());

function keyOf({ request, title }: Case): string {
  return `${request}: ${title}`;
}

for (const one of cases) {
  const [first, last] = one.versions;
  test(`${keyOf(one)} (${first}–${last})`, async (t) => {
    const results = new Map<number, string | undefined>();
    outcomes.set(keyOf(one), results);
    const runs = Array.from({ length: last - first + 1 }, async (_, index) => {
      const version = first + index;
      results.set(version, "not run");
      const reason = await runCase(one, version);
      results.set(version, reason);
      if (reason !== undefined) t.diagnostic(`version ${version}: ${reason}`);
    });
    await Promise.all(runs);
  });
}

/** Returns the reason of a failure. */
async function runCase(one: Case, version: number): Promise<string | undefined> {
  const client = await stage.connect();
  const createName = (prefix = "name") => `${prefix}-${++names}`;
  try {
    await one.run(setScene(stage, client, version, createName));
    return undefined;
  } catch (error) {
    return describeFailure(error);
  } finally {
    client.socket.destroy();
  }
}

describe("the ledger", () => {
  test("holds what passes now, and nothing has got worse", () => {
    settleLedger(new URL("ledger.json", import.meta.url), describeOutcomes());
  });

  test("has a case for every version of every request", () => {
    const all = Object.values(messages).filter((value) => "request" in value);
    for (const { name, versions } of all) {
      for (let version = versions[0]; version <= versions[1]; version++) {
        const isCovered = cases.some(
          ({ request, versions: [first, last] }) =>
            request === name && version >= first && version <= last,
        );
        assert.ok(isCovered, `${name} ${version} has no case`);
      }
    }
  });
});

function describeOutcomes(): Ledger {
  const ledger: Ledger = {};
  for (const [key, results] of outcomes) {
    const passing = [...results].filter(([, reason]) => reason === undefined).map(([v]) => v);
    const failing = [...results].flatMap(([v, reason]) =>
      reason === undefined ? [] : [[v, reason]],
    );
    ledger[key] = {
      passes: toRanges(passing),
      ...(failing.length > 0
        ? { fails: Object.fromEntries(failing) as Record<string, string> }
        : {}),
    };
  }
  return ledger;
}

/** Formats numbers as ranges: `0–3, 5`. */
function toRanges(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`))
    .join(", ");
}
