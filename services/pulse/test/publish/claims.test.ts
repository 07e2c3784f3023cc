// Message ids and sequence numbers of what could not be stored are free again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { createManualClock, systemClock } from "@platform/kernel/time";
import { openLog } from "@platform/log";
import { Random, SimDisk } from "@platform/log/simulation";
import { GuestPool } from "@platform/wasm";
import { openBroker } from "../../src/broker.ts";
import { MessageIds } from "../../src/publish/message-ids.ts";
import { Store } from "../../src/store/store.ts";
import { Topics } from "../../src/topic/topics.ts";

const limits = {
  topics_per_tenant_max: 10,
  partitions_max: 10,
  partitions_default: 1,
  backpressure_limit: 0,
  publish_rate: 0,
  publish_capacity: 1,
  message_bytes_max: 100_000,
  message_ids_max: 1_000,
  producers_max: 1_000,
  max_deliveries: 10,
  nack_backoff_ms: 1_000,
  nack_backoff_max_ms: 60_000,
  followed_topics_per_user_max: 10_000,
  followed_topics_per_tenant_max: 10_000,
  followed_topics_max: 10_000,
};

test("message ids are known for exactly five minutes", async (t) => {
  const disk = new SimDisk(new Random(1));
  const journal = await openLog({ disk });
  t.after(() => journal.close());
  const store = new Store(journal);
  const topics = new Topics(journal, { topicsPerTenantMax: 10, partitionsMax: 10 });
  const topic = await topics.create("", "a");
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const ids = await MessageIds.open(store, clock, 1_000);
  const claim = (id: string) => ids.claim(topic, id).kind;
  assert.equal(claim("first"), "new");
  clock.advance(29_000);
  assert.equal(claim("second"), "new", "in the same bucket");
  clock.advance(5 * 60_000 - 29_001);
  assert.equal(claim("first"), "duplicate");
  clock.advance(1);
  assert.equal(claim("second"), "duplicate");
  assert.equal(claim("first"), "new");
  assert.equal(claim("first"), "duplicate");
  clock.advance(29_000);
  assert.equal(claim("second"), "new");
});

test(
  "a message whose write failed can be sent again with its id and sequence number",
  { timeout: 30_000 },
  async (t) => {
    const disk = new SimDisk(new Random(1));
    const journal = await openLog({ disk });
    const guests = new GuestPool();
    const broker = await openBroker({
      journal,
      guests,
      limits,
      clock: systemClock,
      idSource: createIdSource(),
      onTransform: () => undefined,
      onError: () => undefined,
    });
    t.after(async () => {
      await broker.close();
      await journal.close();
      await guests.close();
    });
    const publish = async (payload: string, facts: { messageId?: string; sequence?: number }) => {
      const { messageId, sequence } = facts;
      const producer = sequence === undefined ? undefined : { id: "p", sequence };
      const input = { topic: "a", payload: Buffer.from(payload), messageId, producer };
      const [outcome] = await broker.publisher.publish("", [input], { isRated: false });
      return outcome!.kind;
    };
    assert.equal(await publish("first", { messageId: "one", sequence: 1 }), "stored");
    disk.capacity = 0;
    for (const facts of [
      { messageId: "two" },
      { sequence: 2 },
      { messageId: "three", sequence: 3 },
    ]) {
      await assert.rejects(publish("lost", facts), { code: "insufficient_storage" });
    }
    disk.capacity = Number.POSITIVE_INFINITY;
    assert.equal(await publish("again", { messageId: "two" }), "stored");
    assert.equal(await publish("again", { sequence: 2 }), "stored");
    assert.equal(await publish("again", { messageId: "three", sequence: 3 }), "stored");
    // Stored messages are still known.
    assert.equal(await publish("first", { messageId: "one" }), "duplicate");
    assert.equal(await publish("again", { sequence: 3 }), "duplicate");
  },
);
