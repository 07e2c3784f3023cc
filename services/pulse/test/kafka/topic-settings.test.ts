// Topic settings of Kafka's tools survive a restart and are deleted with the topic.
import assert from "node:assert/strict";
import { test } from "node:test";
import { KafkaStage } from "./stage.ts";

test("settings survive a restart, and a new topic of the same name starts without them", async () => {
  await using stage = await KafkaStage.open();
  const read = () => {
    const { settings, topics } = stage.broker;
    const topic = topics.get("", "t");
    return [settings.of(topic).get("compression.type"), settings.batchBytesMaxOf(topic)];
  };
  const topic = await stage.broker.topics.create("", "t");
  const changes = { "compression.type": "lz4", "max.message.bytes": "1000", "flush.ms": "5" };
  await stage.broker.settings.change(topic, changes);
  await stage.broker.settings.change(topic, { "flush.ms": null });
  await stage.restart();
  assert.deepEqual(read(), ["lz4", 1_000]);
  await stage.broker.topics.delete(stage.broker.topics.get("", "t"));
  await stage.broker.topics.create("", "t");
  assert.deepEqual(read(), [undefined, stage.broker.settings.limits.batchBytesMax]);
  await stage.restart();
  assert.deepEqual(read(), [undefined, stage.broker.settings.limits.batchBytesMax]);
});
