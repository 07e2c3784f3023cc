// A broker that is killed under a mixed load, again and again, on one folder.
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "@platform/log/simulation";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import { History, judge } from "./history.ts";
import { targetProcess } from "./target.ts";
import { runLoad } from "./workload.ts";

/** Rounds to run; a soak sets more. */
const rounds = Number(process.env["PLATFORM_BROKER_KILLS"] ?? 3);
const firstSeed = Number(process.env["PLATFORM_CRASH_SEED"] ?? 1);

test("kill -9 under load loses, splits, reorders or repeats no acknowledged call", async (t) => {
  const pulse = await startPulseProcess(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" });
  let calls = 0;
  let unknown = 0;
  for (let round = 0; round < rounds; round++) {
    const random = new Random(firstSeed + round);
    const history = new History();
    const load = { lanes: 12, steps: 60, topicPrefix: `r${round}` };
    const running = runLoad(targetProcess(pulse), history, random, load);
    await sleep(50 + random.below(500));
    await pulse.kill();
    await running;
    await pulse.start();
    try {
      await judge(targetProcess(pulse), history.moment());
    } catch (error) {
      throw new Error(`round ${round}, seed ${firstSeed + round}`, { cause: error });
    }
    calls += history.calls.length;
    unknown += history.calls.filter(({ placed }) => placed === undefined).length;
  }
  t.diagnostic(`${rounds} kills, ${calls} calls judged, ${unknown} of them cut off`);
});
