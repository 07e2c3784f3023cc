// Unused groups are deleted; others stay.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { groupKey } from "../../src/kafka/api/groups.ts";
import { GroupRetention } from "../../src/kafka/group-retention.ts";
import { joinGroup } from "../../src/kafka/protocol/messages/index.ts";
import { KafkaStage } from "./stage.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let stage: KafkaStage;
before(async () => {
  stage = await KafkaStage.open({ sync: { kind: "os" } });
});
after(() => stage[Symbol.asyncDispose]());

function watch(retentionMs: number) {
  const { offsets, groups } = stage.broker;
  const clock = createManualClock(Date.now());
  const onError = (error: unknown) => assert.fail(String(error));
  return { clock, retention: new GroupRetention({ offsets, groups, clock, retentionMs, onError }) };
}

const names = () => [...stage.broker.offsets.groups("")].map(({ name }) => name).sort();

async function commit(group: string): Promise<void> {
  const topic = await stage.broker.topics.ensure("", "t");
  await stage.broker.offsets.claim("", group, "kafka");
  await stage.broker.offsets.commit("", group, [{ topic, partition: 0, offset: 1 }]);
}

test("a group without members is kept for the retention time, one without offsets for ten minutes", async () => {
  const { clock, retention } = watch(7 * dayMs);
  await commit("used");
  await stage.broker.offsets.claim("", "unused", "kafka");
  await stage.broker.offsets.claim("", "own", "dispatch");
  clock.advance(9 * minuteMs);
  await retention.sweep();
  assert.deepEqual(names(), ["own", "unused", "used"]);
  clock.advance(minuteMs);
  await retention.sweep();
  assert.deepEqual(names(), ["own", "used"]);
  clock.advance(6 * dayMs);
  retention.noteEmpty(groupKey("", "used"));
  clock.advance(6 * dayMs);
  await retention.sweep();
  assert.deepEqual(names(), ["own", "used"], "a member was there six days ago");
  clock.advance(dayMs);
  await retention.sweep();
  assert.deepEqual(names(), ["own"]);
});

test("a group with a member is never deleted, and without a retention time offsets are kept for ever", async () => {
  await commit("joined");
  const client = await stage.connect();
  const { errorCode } = await client.ask(joinGroup, 3, {
    groupId: "joined",
    sessionTimeoutMs: 60_000,
    memberId: "",
    protocolType: "consumer",
    protocols: [{ name: "range", metadata: Buffer.from("m") }],
  });
  assert.equal(errorCode, 0);
  const short = watch(minuteMs);
  short.clock.advance(dayMs);
  await short.retention.sweep();
  assert.ok(names().includes("joined"));
  await commit("kept");
  const forever = watch(0);
  forever.clock.advance(10_000 * dayMs);
  await forever.retention.sweep();
  assert.ok(names().includes("kept"));
});
