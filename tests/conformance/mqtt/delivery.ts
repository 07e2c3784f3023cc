// Messages on their way to clients: properties, QoS flows, repetition, flow control, packet sizes, aliases, order.
import assert from "node:assert/strict";
import { createConnect } from "../../../services/pulse/test/mqtt/client.ts";
import { both, five, type Case } from "./case.ts";

export const deliveryCases: Case[] = [
  five(
    "properties reach subscribers unaltered and in order",
    "3.3.2-4 3.3.2-15 3.3.2-16 3.3.2-17 3.3.2-18 3.3.2-19 3.3.2-20 1.5.7-1",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(topic, { qos: 1 });
      const properties = {
        payloadFormatIndicator: true,
        contentType: "text/plain; charset=ü",
        responseTopic: "answers/here.now",
        correlationData: Buffer.from([0, 255, 1]),
        userProperties: { z: ["1", "2"], a: "", ключ: "значение" },
      };
      await (await scene.connect()).publish(topic, "x", { properties });
      const received = (await client.next("publish")).properties;
      assert.deepEqual({ ...received, userProperties: { ...received.userProperties } }, properties);
    },
  ),
  five(
    "the expiry of a message counts down, and expired ones are not sent",
    "3.3.2-5 3.3.2-6 4.3.3-13",
    async (scene) => {
      const topic = scene.createName("t");
      const clientId = scene.createName();
      const client = await scene.connectKept(clientId);
      await client.subscribe(topic, { qos: 1 });
      await client.disconnect();
      const publisher = await scene.connect();
      await publisher.publish(topic, "soon gone", { properties: { messageExpiryInterval: 1 } });
      await publisher.publish(topic, "stays", { properties: { messageExpiryInterval: 100 } });
      await new Promise((resolve) => setTimeout(resolve, 2_100));
      const again = await scene.connectKept(clientId);
      const message = await again.next("publish");
      assert.equal(String(message.payload), "stays");
      const { messageExpiryInterval } = message.properties;
      assert.ok(
        messageExpiryInterval <= 98 && messageExpiryInterval > 80,
        `${messageExpiryInterval}`,
      );
    },
  ),
  both(
    "QoS 1 and 2 to a client: identifiers, DUP, PUBREL after PUBREC",
    "4.3.2-1 4.3.3-1 2.3.1-4 2.3.1-5 3.3.1-2",
    "2.2.1-4 4.3.1-1 4.3.2-1 4.3.2-2 4.3.2-3 4.3.3-1 4.3.3-2 4.3.3-3 4.3.3-4 4.3.3-5 2.2.1-2 4.5.0-1",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(topic, { qos: 2 });
      const publisher = await scene.connect();
      const ids = new Set<number>();
      for (const qos of [0, 1, 2, 1, 2]) await publisher.publish(topic, "x", { qos });
      for (const qos of [0, 1, 2, 1, 2]) {
        const message = await client.next("publish");
        assert.equal(message.qos, qos);
        assert.equal(message.dup, false);
        if (qos > 0) ids.add(message.messageId);
      }
      assert.equal(ids.size, 4);
      for (const [index, messageId] of [...ids].entries()) {
        if (index % 2 === 0) client.send({ cmd: "puback", messageId });
        else {
          client.send({ cmd: "pubrec", messageId });
          assert.equal((await client.next("pubrel")).messageId, messageId);
          client.send({ cmd: "pubcomp", messageId });
        }
      }
      await client.expectNothing();
    },
  ),
  both(
    "unacknowledged messages are repeated to a client that comes back, in order",
    "4.4.0-1 3.3.1-1 4.6.0-1 4.6.0-4",
    "4.4.0-1 3.3.1-1 4.3.3-6 4.3.3-7",
    async (scene) => {
      const topic = scene.createName("t");
      const clientId = scene.createName();
      const client = await scene.connectKept(clientId);
      await client.subscribe(topic, { qos: 2 });
      const publisher = await scene.connect();
      for (const [qos, text] of [
        [1, "a"],
        [2, "b"],
        [2, "released"],
        [1, "c"],
      ] as const) {
        const properties = { messageExpiryInterval: 2 };
        await publisher.publish(topic, text, {
          qos,
          ...(scene.version === 5 ? { properties } : {}),
        });
      }
      const sent = new Map<string, number>();
      for (let index = 0; index < 4; index++) {
        const { payload, messageId } = await client.next("publish");
        sent.set(String(payload), messageId);
      }
      client.send({ cmd: "pubrec", messageId: sent.get("released") });
      await client.next("pubrel");
      await client.expectNothing();
      await client.drop();
      if (scene.version === 5) await new Promise((resolve) => setTimeout(resolve, 2_100));
      const again = await scene.connectKept(clientId);
      for (const text of ["a", "b"]) {
        const message = await again.next("publish");
        assert.equal(String(message.payload), text);
        assert.equal(message.messageId, sent.get(text));
        assert.equal(message.dup, true);
      }
      assert.equal((await again.next("pubrel")).messageId, sent.get("released"));
      assert.equal(String((await again.next("publish")).payload), "c");
      await again.expectNothing();
    },
  ),
  both(
    "a client that subscribes again at once misses nothing",
    "4.1.0-1",
    "4.1.0-1",
    async (scene) => {
      const topic = scene.createName("t");
      const clientId = scene.createName();
      const client = await scene.connectKept(clientId);
      await client.subscribe(topic, { qos: 1 });
      const publisher = await scene.connect();
      await publisher.publish(topic, "in flight");
      await client.next("publish");
      await client.drop();
      await publisher.publish(topic, "while away");
      const again = await scene.open();
      const properties = scene.version === 5 ? { properties: { sessionExpiryInterval: 600 } } : {};
      again.send(createConnect(scene.version, { clientId, clean: false, ...properties }));
      again.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic, qos: 1 }] });
      await again.next("connack");
      const texts: string[] = [];
      let isSubscribed = false;
      while (texts.length < 2 || !isSubscribed) {
        const packet = await again.next();
        if (packet.cmd === "suback") isSubscribed = true;
        else texts.push(String(packet.payload));
      }
      assert.deepEqual(texts, ["in flight", "while away"]);
    },
  ),
  five("a refusal of the client acknowledges a message", "4.4.0-2", async (scene) => {
    const topic = scene.createName("t");
    const clientId = scene.createName();
    const client = await scene.connectKept(clientId);
    await client.subscribe(topic, { qos: 2 });
    const publisher = await scene.connect();
    for (const qos of [1, 2]) {
      await publisher.publish(topic, "x", { qos });
      const { messageId } = await client.next("publish");
      client.send({ cmd: qos === 1 ? "puback" : "pubrec", messageId, reasonCode: 0x80 });
      await client.expectNothing();
    }
    await client.drop();
    await (await scene.connectKept(clientId)).expectNothing();
  }),
  five(
    "a client gets no more messages than its receive maximum, but other packets",
    "3.3.4-9 3.3.4-10 4.9.0-2 4.9.0-3",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect({ properties: { receiveMaximum: 2 } });
      await client.subscribe(topic, { qos: 2 });
      const publisher = await scene.connect();
      for (const text of ["a", "b", "c", "d"]) await publisher.publish(topic, text, { qos: 2 });
      const first = await client.next("publish");
      await client.next("publish");
      await client.expectNothing();
      await client.publish(scene.createName("other"), "own");
      client.send({ cmd: "pubrec", messageId: first.messageId });
      await client.next("pubrel");
      await client.expectNothing();
      client.send({ cmd: "pubcomp", messageId: first.messageId });
      assert.equal(String((await client.next("publish")).payload), "c");
    },
  ),
  five(
    "a packet above the client's maximum is left out, and counts as delivered",
    "3.1.2-24 3.1.2-25",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect({
        properties: { maximumPacketSize: 60, receiveMaximum: 1 },
      });
      await client.subscribe(topic, { qos: 1 });
      const publisher = await scene.connect();
      await publisher.publish(topic, "x".repeat(60));
      await publisher.publish(topic, "small");
      assert.equal(String((await client.next("publish")).payload), "small");
      const plain = await scene.connect({ properties: { maximumPacketSize: 60 } });
      await plain.subscribe(topic, { qos: 0 });
      await publisher.publish(topic, "x".repeat(60));
      await publisher.publish(topic, "small too");
      assert.equal(String((await plain.next("publish")).payload), "small too");
    },
  ),
  five(
    "topic aliases to a client, up to its maximum",
    "3.1.2-26 3.1.2-27 3.3.2-11",
    async (scene) => {
      const root = scene.createName("t");
      const publisher = await scene.connect();
      for (const [topicAliasMaximum, used] of [
        [1, 1],
        [0, 0],
      ] as const) {
        const client = await scene.connect({ properties: { topicAliasMaximum } });
        await client.subscribe(`${root}/#`, { qos: 1 });
        const seen: [string, number | undefined][] = [];
        for (const topic of [`${root}/a`, `${root}/a`, `${root}/b`]) {
          await publisher.publish(topic, "x");
          const message = await client.next("publish");
          client.send({ cmd: "puback", messageId: message.messageId });
          seen.push([message.topic, message.properties?.topicAlias]);
        }
        const named: [string, number | undefined][] = [
          [`${root}/a`, undefined],
          [`${root}/a`, undefined],
          [`${root}/b`, undefined],
        ];
        const aliased: [string, number | undefined][] = [
          [`${root}/a`, 1],
          ["", 1],
          [`${root}/b`, undefined],
        ];
        assert.deepEqual(seen, used === 1 ? aliased : named);
        await client.drop();
      }
    },
  ),
  both(
    "messages of a client keep their order",
    "4.6.0-5 4.6.0-6",
    "4.6.0-5 4.6.0-6",
    async (scene) => {
      const topic = scene.createName("t");
      await scene.pulse.post("/api/v1/topics", { name: topic, partitions: 4 });
      const client = await scene.connect();
      await client.subscribe(topic, { qos: 1 });
      const publisher = await scene.connect();
      const count = 200;
      for (let index = 0; index < count; index++) {
        publisher.send({
          cmd: "publish",
          topic,
          payload: String(index),
          qos: 1,
          messageId: index + 1,
          dup: false,
          retain: false,
        });
      }
      for (let index = 0; index < count; index++) {
        const message = await client.next("publish");
        assert.equal(String(message.payload), String(index));
        client.send({ cmd: "puback", messageId: message.messageId });
      }
    },
  ),
  both("U+FEFF is kept in texts", "1.5.3-3", "1.5.4-3", async (scene) => {
    const topic = `${scene.createName("t")}/\uFEFFx`;
    const client = await scene.connect();
    await client.subscribe(topic);
    await (await scene.connect()).publish(topic, "x");
    assert.equal((await client.next("publish")).topic, topic);
  }),
  both(
    "state survives a restart of the broker, and an end without warning",
    "4.1.0-1 4.2.0-1",
    "3.1.2-23 4.2.0-1",
    async (scene) => {
      const topic = scene.createName("t");
      const clientId = scene.createName();
      for (const stop of ["stop", "kill"] as const) {
        const client = await scene.connectKept(clientId);
        await client.subscribe(topic, { qos: 2 });
        const publisher = await scene.connect();
        await publisher.publish(topic, "kept", { qos: 2, retain: true });
        const first = await client.next("publish");
        const keptId = first.messageId;
        await client.expectNothing();
        await scene.pulse[stop]();
        await scene.pulse.start();
        const again = await scene.connectKept(clientId);
        const message = await again.next("publish");
        assert.equal(message.messageId, keptId);
        assert.equal(message.dup, true);
        again.send({ cmd: "pubrec", messageId: keptId });
        await again.next("pubrel");
        again.send({ cmd: "pubcomp", messageId: keptId });
        await again.expectNothing();
        const later = await scene.connect();
        await later.subscribe(topic);
        assert.equal((await later.next("publish")).retain, true);
        const cleaner = await scene.connect();
        await cleaner.publish(topic, "", { retain: true });
        await again.next("publish");
        await again.drop();
        const clean = await scene.connect({ clientId, clean: true });
        await clean.disconnect();
      }
    },
  ),
];
