// Fetches under a leader epoch that is not the partition's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openLog } from "@platform/log";
import { encodeBatch } from "@platform/log/batch";
import { Random, SimDisk } from "@platform/log/simulation";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { fetch, produce } from "../../src/kafka/protocol/messages/index.ts";
import { KafkaStage } from "./stage.ts";

const batchOf = (text: string) =>
  encodeBatch([{ key: null, value: Buffer.from(text), headers: [], timestamp: 1 }]);

/** The disk of a log that lost acknowledged data after it was written: the next start raises the leader epoch. */
async function damageLog(): Promise<SimDisk> {
  const disk = new SimDisk(new Random(1));
  const log = await openLog({ disk, inPlaceBytesMin: 1_000_000, journalFileBytes: 1_000_000 });
  const topic = await log.createTopic("t");
  const [partition] = topic.partitions;
  for (const text of ["value0", "value1", "value2", "value3"]) {
    await log.append([{ partition: partition!, batch: batchOf(text) }]);
  }
  const killed = disk.kill(new Random(1));
  const [journal] = await killed.list("journal");
  const path = `journal/${journal!}`;
  killed.damage(path, killed.bytesOf(path).indexOf("value1"));
  await log.close();
  return killed;
}

test("a Fetch under an older leader epoch is fenced, one under a newer one is unknown, and others are served", async () => {
  await using stage = await KafkaStage.open({ disk: await damageLog() });
  const client = await stage.connect();
  const { topics } = await client.ask(produce, 9, {
    acks: -1,
    timeoutMs: 5_000,
    topics: [{ name: "t", partitions: [{ index: 0, records: [batchOf("after")] }] }],
  });
  const { errorCode, baseOffset } = topics[0]!.partitions[0]!;
  assert.equal(errorCode, 0);
  const fetchUnder = async (currentLeaderEpoch: number) => {
    const partition = { partition: 0, fetchOffset: baseOffset, partitionMaxBytes: 1_000_000 };
    const found = await client.ask(fetch, 11, {
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: 1_000_000,
      isolationLevel: 0,
      topics: [{ name: "t", partitions: [{ ...partition, currentLeaderEpoch }] }],
    });
    const [answer] = found.topics[0]!.partitions;
    return [answer!.errorCode, (answer!.records?.length ?? 0) > 0];
  };
  assert.deepEqual(await fetchUnder(0), [ERROR_CODES.fencedLeaderEpoch, false]);
  assert.deepEqual(await fetchUnder(1), [ERROR_CODES.none, true]);
  assert.deepEqual(await fetchUnder(2), [ERROR_CODES.unknownLeaderEpoch, false]);
  assert.deepEqual(await fetchUnder(-1), [ERROR_CODES.none, true], "a client that knows none");
});
