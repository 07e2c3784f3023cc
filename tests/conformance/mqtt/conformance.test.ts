// Runs all cases in both versions. The ledger has the outcome of each normative statement: its cases, or the reason for none.
// PLATFORM_LEDGER=write rewrites the ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PulseProcess } from "../../../services/pulse/test/fixture/pulse-process.ts";
import { describeFailure, settleLedger } from "../ledger.ts";
import { setScene, type Case } from "./case.ts";
import { deliveryCases } from "./delivery.ts";
import { malformedCases } from "./malformed.ts";
import { publishingCases } from "./publishing.ts";
import { sessionCases } from "./sessions.ts";
import { STATEMENTS, type Statement } from "./statements.ts";
import { subscribingCases } from "./subscribing.ts";

const cases: readonly Case[] = [
  ...malformedCases,
  ...sessionCases,
  ...publishingCases,
  ...subscribingCases,
  ...deliveryCases,
];
/** By title and version: the reason of a failure, or undefined. */
const outcomes = new Map<string, string | undefined>();
const folder = mkdtempSync(join(tmpdir(), "platform-mqtt-"));
const pulse = new PulseProcess(folder, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" });

before(() => pulse.start());
after(async () => {
  await pulse.kill();
  rmSync(folder, { recursive: true, force: true });
});

for (const one of cases) {
  for (const version of one.versions) {
    test(`${one.title} (${version === 4 ? "3.1.1" : "5"})`, async (t) => {
      const { scene, end } = setScene(pulse, version);
      try {
        await one.run(scene);
        outcomes.set(`${one.title} ${version}`, undefined);
      } catch (error) {
        outcomes.set(`${one.title} ${version}`, describeFailure(error));
        t.diagnostic((error as Error).stack ?? "");
      } finally {
        end();
      }
    });
  }
}

test("every normative statement has a case or a reason, and each case holds", () => {
  const known = new Set(STATEMENTS.map(({ version, number }) => `${version} ${number}`));
  for (const { statements, title } of cases) {
    for (const version of [4, 5] as const) {
      for (const number of statements[version] ?? []) {
        assert.ok(
          known.has(`${version} ${number}`),
          `${title}: no statement ${number} in ${version}`,
        );
      }
    }
  }
  const ledger: Record<string, unknown> = {};
  for (const statement of STATEMENTS) {
    const { version, number } = statement;
    ledger[`${version === 4 ? "3.1.1" : "5"} MQTT-${number}`] = settle(statement);
  }
  const others = cases
    .flatMap(({ title, versions }) => versions.map((version) => `${title} ${version}`))
    .filter((key) => outcomes.get(key) !== undefined);
  assert.deepEqual(others, [], "cases that fail");
  settleLedger(new URL("ledger.json", import.meta.url), ledger);
});

function settle({ version, number, says, without }: Statement): unknown {
  const own = cases.filter(({ statements }) => statements[version]?.includes(number) === true);
  if (own.length === 0) {
    assert.ok(without !== undefined, `statement ${number} of ${version} has no case and no reason`);
    return { says, without };
  }
  assert.ok(without === undefined, `statement ${number} of ${version} has a case and a reason`);
  const failed = own.filter(({ title }) => outcomes.get(`${title} ${version}`) !== undefined);
  return {
    says,
    cases: own.map(({ title }) => title),
    ...(failed.length === 0 ? {} : { fails: failed.map(({ title }) => title) }),
  };
}
