// Members that come, go, die and stall at random: the group always comes to rest again.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GroupCoordinator } from "../../src/consumer-group/index.ts";
import { SimulatedMember } from "./simulated-member.ts";
import { SimulatedTime } from "./simulated-time.ts";

const partitions = 12;
const sessionTimeoutMs = 6_000;
const rebalanceTimeoutMs = 20_000;

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("come" as const), isStatic: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("die" as const), which: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("stall" as const),
      which: fc.nat(),
      ms: fc.integer({ min: 100, max: 60_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("return" as const), which: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(15_000) }) },
);

test("after random joins, leaves, deaths and stalls the live members share all partitions in one generation", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const time = new SimulatedTime();
      let ids = 0;
      const coordinator = new GroupCoordinator({ time, createId: () => String(++ids) });
      const members: SimulatedMember[] = [];
      const living = () => members.filter(({ isGone }) => !isGone);
      const come = (name: string, isStatic: boolean) => {
        const options = { name, isStatic, sessionTimeoutMs, rebalanceTimeoutMs, partitions };
        members.push(new SimulatedMember(coordinator, time, options));
      };
      for (const action of steps) {
        const candidates = living();
        const member =
          "which" in action ? candidates[action.which % Math.max(1, candidates.length)] : undefined;
        if (action.kind === "come") come(`m${members.length}`, action.isStatic);
        else if (action.kind === "wait") await time.advance(action.ms);
        else if (action.kind === "leave") member?.leave();
        else if (action.kind === "die") member?.die();
        else if (action.kind === "stall") member?.stall(action.ms);
        else if (member !== undefined) {
          // A static member comes back under its name while its former self is still known.
          member.die();
          come(member.options.name, member.options.isStatic);
        }
        await time.advance(10);
      }
      // The longest stall, then twice what a rebalance may take.
      await time.advance(60_000 + 2 * (rebalanceTimeoutMs + sessionTimeoutMs));
      const survivors = living();
      if (survivors.length === 0) {
        await time.advance(2 * rebalanceTimeoutMs);
        assert.equal(coordinator.groupCount, 0);
        return;
      }
      assert.equal(coordinator.describe("g")?.state, "Stable");
      const shares = survivors.flatMap(({ assigned }) => assigned ?? []);
      assert.equal(shares.length, survivors.length);
      assert.equal(new Set(shares.map(({ generation }) => generation)).size, 1);
      const shared = shares.flatMap((share) => share.partitions).sort((a, b) => a - b);
      assert.deepEqual(
        shared,
        Array.from({ length: partitions }, (_, number) => number),
      );
      assert.equal(coordinator.countMembers(), survivors.length);
    }),
    { numRuns: Number(process.env["PLATFORM_GROUP_RUNS"] ?? 300) },
  );
});
