// PUBLISH of clients: acknowledgements, QoS 2, topic aliases, flow control, refusals.
import assert from "node:assert/strict";
import { both, five, four, type Case } from "./case.ts";

export const publishingCases: Case[] = [
  both(
    "each QoS is answered as it demands",
    "3.3.4-1 2.3.1-6 4.3.1-1 4.3.2-2 4.3.3-2",
    "3.3.4-1 2.2.1-5 4.3.2-4 4.3.3-8 4.3.3-11",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.publish(topic, "0", { qos: 0 });
      await client.expectNothing();
      assert.equal((await client.publish(topic, "1", { qos: 1, messageId: 11 })).messageId, 11);
      assert.equal((await client.publish(topic, "2", { qos: 2, messageId: 12 })).messageId, 12);
    },
  ),
  both(
    "a packet identifier is free after the exchange, whatever DUP says",
    "3.3.1-3",
    "4.3.2-5 4.3.3-12 3.3.1-3",
    async (scene) => {
      const topic = scene.createName("t");
      const watcher = await scene.connect();
      await watcher.subscribe(topic, { qos: 0 });
      const client = await scene.connect();
      await client.publish(topic, "one", { qos: 1, messageId: 5 });
      await client.publish(topic, "two", { qos: 1, messageId: 5, dup: true });
      await client.publish(topic, "three", { qos: 2, messageId: 5 });
      await client.publish(topic, "four", { qos: 2, messageId: 5, dup: true });
      for (const text of ["one", "two", "three", "four"]) {
        const message = await watcher.next("publish");
        assert.equal(String(message.payload), text);
        assert.equal(message.dup, false);
      }
    },
  ),
  both(
    "a repeated QoS 2 message is stored once, also over a new connection",
    "4.3.3-2",
    "4.3.3-10",
    async (scene) => {
      const topic = scene.createName("t");
      const clientId = scene.createName();
      const watcher = await scene.connect();
      await watcher.subscribe(topic, { qos: 0 });
      const publish = {
        cmd: "publish",
        topic,
        payload: "once",
        qos: 2,
        messageId: 9,
        retain: false,
      };
      const client = await scene.connectKept(clientId);
      client.send({ ...publish, dup: false });
      await client.next("pubrec");
      client.send({ ...publish, dup: true });
      await client.next("pubrec");
      await client.drop();
      const again = await scene.connectKept(clientId);
      again.send({ ...publish, dup: true });
      await again.next("pubrec");
      again.send({ cmd: "pubrel", messageId: 9 });
      assert.equal((await again.next("pubcomp")).messageId, 9);
      await watcher.next("publish");
      await watcher.expectNothing();
    },
  ),
  both("a PUBREL for an unknown identifier is answered", "4.3.3-2", "4.3.3-11", async (scene) => {
    const client = await scene.connect();
    client.send({ cmd: "pubrel", messageId: 77 });
    assert.equal((await client.next("pubcomp")).messageId, 77);
  }),
  both(
    "acknowledgements are in the order of the messages",
    "4.6.0-2 4.6.0-3",
    "",
    async (scene) => {
      const client = await scene.connect();
      const topic = scene.createName("t");
      for (let id = 1; id <= 50; id++) {
        client.send({
          cmd: "publish",
          topic: `${topic}/${id % 7}`,
          payload: "x",
          qos: 1 + (id % 2),
          messageId: id,
          dup: false,
          retain: false,
        });
      }
      for (let id = 1; id <= 50; id++) {
        const packet = await client.next(id % 2 === 0 ? "puback" : "pubrec");
        assert.equal(packet.messageId, id);
      }
    },
  ),
  both(
    "a topic with wildcards is refused",
    "3.3.2-2 4.7.1-1",
    "3.3.2-2 4.7.0-1 3.3.2-1",
    async (scene) => {
      for (const topic of ["a/+", "#"]) {
        const client = await scene.connect();
        client.send({
          cmd: "publish",
          topic: "x",
          payload: "x",
          qos: 0,
          dup: false,
          retain: false,
        });
        const bytes = Buffer.from(topic);
        const tail = scene.version === 5 ? [0] : [];
        client.sendBytes(0x30, 2 + bytes.length + tail.length, 0, bytes.length, ...bytes, ...tail);
        const last = await client.closed();
        if (scene.version === 5) assert.equal(last.reasonCode, 0x90);
      }
    },
  ),
  five(
    "a response topic with wildcards is a protocol error",
    "3.3.2-14 3.3.2-13",
    async (scene) => {
      const client = await scene.connect();
      client.send({
        cmd: "publish",
        topic: "a",
        payload: "",
        qos: 0,
        dup: false,
        retain: false,
        properties: { responseTopic: "a/#" },
      });
      assert.equal((await client.closed()).reasonCode, 0x82);
    },
  ),
  five(
    "topic aliases stand for topics on their connection only",
    "3.3.2-7 3.3.2-12 3.3.2-8 3.3.2-9 3.2.2-17",
    async (scene) => {
      const topic = scene.createName("t");
      const watcher = await scene.connect();
      await watcher.subscribe(topic);
      const client = await scene.connect();
      await client.publish(topic, "with topic", { properties: { topicAlias: 64 } });
      await client.publish("", "by alias", { properties: { topicAlias: 64 } });
      assert.equal(String((await watcher.next("publish")).payload), "with topic");
      const second = await watcher.next("publish");
      assert.equal(second.topic, topic);
      for (const [topicAlias, reason] of [
        [64, 0x82],
        [65, 0x94],
        [0, 0x94],
      ] as const) {
        const other = await scene.connect();
        other.sendBytes(0x30, 6, 0, 0, 3, 0x23, 0, topicAlias);
        assert.equal((await other.closed()).reasonCode, reason, `alias ${topicAlias}`);
      }
    },
  ),
  five("an empty topic without an alias is a protocol error", "4.7.3-1", async (scene) => {
    const client = await scene.connect();
    client.sendBytes(0x30, 3, 0, 0, 0);
    assert.equal((await client.closed()).reasonCode, 0x82);
  }),
  four("an empty topic closes the connection", "4.7.3-1 3.3.2-1", async (scene) => {
    const client = await scene.connect();
    client.sendBytes(0x30, 2, 0, 0);
    await client.closed();
  }),
  five(
    "more messages than the receive maximum end the connection",
    "3.3.4-7 4.9.0-1",
    async (scene) => {
      const client = await scene.connect();
      const topic = scene.createName("t");
      for (let id = 1; id <= 1_001; id++) {
        client.send({
          cmd: "publish",
          topic,
          payload: "x",
          qos: 2,
          messageId: id,
          dup: false,
          retain: false,
        });
      }
      assert.equal((await client.closed())?.reasonCode, 0x93);
    },
  ),
  five(
    "a refused message has its reason, and its identifier is free",
    "4.3.3-9 3.5.2-2 3.4.2-2",
    async (scene) => {
      const topic = scene.createName("typed");
      await scene.pulse.post(`/api/v1/topics`, { name: topic });
      const answer = await scene.pulse.get(`/api/v1/topics/${topic}/schema`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ type: "object", required: ["amount"] }),
      });
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      const client = await scene.connect();
      const publish = {
        cmd: "publish",
        topic,
        payload: "{}",
        messageId: 3,
        dup: false,
        retain: false,
      };
      client.send({ ...publish, qos: 1 });
      const refused = await client.next("puback");
      assert.equal(refused.reasonCode, 0x99);
      assert.notEqual(refused.properties.reasonString, undefined);
      client.send({ ...publish, qos: 2 });
      assert.equal((await client.next("pubrec")).reasonCode, 0x99);
      client.send({ ...publish, qos: 2, payload: '{"amount":1}' });
      assert.equal((await client.next("pubrec")).reasonCode ?? 0, 0);
      const terse = await scene.connect({ properties: { requestProblemInformation: false } });
      terse.send({ ...publish, qos: 1 });
      assert.equal((await terse.next("puback")).properties?.reasonString, undefined);
    },
  ),
  five(
    "reason strings are left out on request or if they are too long",
    "3.1.2-29 3.2.2-19 3.9.2-1 3.14.2-3",
    async (scene) => {
      const client = await scene.connect({ properties: { maximumPacketSize: 20 } });
      const suback = await client.subscribe("a/#/b", { qos: 0 });
      assert.deepEqual(suback.granted, [0x8f]);
      assert.equal(suback.properties?.reasonString, undefined);
      client.sendBytes(0x30, 3, 0, 0, 0);
      assert.equal((await client.closed()).properties?.reasonString, undefined);
    },
  ),
  five("user properties of the broker have a form", "", async (scene) => {
    const client = await scene.connect();
    const topic = scene.createName("t");
    for (const [name, value] of [
      ["platform-priority", "high"],
      ["platform-other", "1"],
    ] as const) {
      const puback = await client.publish(topic, "x", {
        properties: { userProperties: { [name]: value } },
      });
      assert.equal(puback.reasonCode, 0x83);
    }
  }),
];
