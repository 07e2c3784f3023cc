// Runs the rules of RFC 9111 for a shared cache on each runtime. The ledger has the outcome of each rule.
// PLATFORM_LEDGER=write rewrites the ledger.
import { type TestContext, test } from "node:test";
import { runtimes, startGate } from "../../../services/gate/test/fixture/gate-process.ts";
import { describeFailure, settleLedger } from "../ledger.ts";
import { Scene, ScriptedUpstream } from "./case.ts";
import { cases } from "./cases.ts";

const outcomes: Record<string, Record<string, string>> = {};

for (const runtime of runtimes) {
  test(`the rules for a shared cache on ${runtime.name}`, async (context: TestContext) => {
    const upstream = new ScriptedUpstream();
    const target = await upstream.start();
    context.after(() => upstream.stop());
    const config = { workers: 2, routes: [{ prefix: "/", target, cache_ttl_seconds: 60 }] };
    const { port } = await startGate(context, { runtime, config });
    for (const [index, one] of cases.entries()) {
      const { rule, title } = one;
      await context.test(`${rule}: ${title}`, async (t) => {
        const results = (outcomes[`${rule} ${title}`] ??= {});
        try {
          await one.run(new Scene(port, upstream, `/case/${index}`));
          results[runtime.name] = "ok";
        } catch (error) {
          results[runtime.name] = describeFailure(error);
          t.diagnostic((error as Error).stack ?? "");
        }
      });
    }
  });
}

test("the outcomes are those of the ledger", () => {
  const isPartial = runtimes.length < 2;
  settleLedger(new URL("ledger.json", import.meta.url), outcomes, isPartial);
});
