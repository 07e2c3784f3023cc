// SUBSCRIBE and UNSUBSCRIBE, filters, retained messages, shared subscriptions.
import assert from "node:assert/strict";
import type { RawClient } from "../../../services/pulse/test/mqtt/client.ts";
import { both, five, type Case } from "./case.ts";

async function expectPayloads(client: RawClient, ...texts: string[]): Promise<void> {
  for (const text of texts) assert.equal(String((await client.next("publish")).payload), text);
}

export const subscribingCases: Case[] = [
  both(
    "a SUBSCRIBE has one SUBACK with a code per filter, in order",
    "3.8.4-1 3.8.4-2 3.8.4-4 3.8.4-5 3.9.3-1 3.9.3-2 2.3.1-7",
    "3.8.4-1 3.8.4-2 3.8.4-5 3.8.4-6 3.8.4-7 3.9.3-1 3.9.3-2 3.2.2-10 2.2.1-6",
    async (scene) => {
      const client = await scene.connect();
      client.send({
        cmd: "subscribe",
        messageId: 21,
        subscriptions: [
          { topic: "x/#", qos: 2 },
          { topic: "x/#/y", qos: 1 },
          { topic: "+x", qos: 0 },
          { topic: "y", qos: 0 },
        ],
      });
      const suback = await client.next("suback");
      assert.equal(suback.messageId, 21);
      const failure = scene.version === 5 ? 0x8f : 0x80;
      assert.deepEqual(suback.granted, [2, failure, failure, 0]);
    },
  ),
  both(
    "wildcards match levels",
    "4.7.1-2 4.7.1-3 4.7.3-1 4.7.3-4 3.3.2-3 3.8.3-2 4.7.3-3",
    "4.7.1-1 4.7.1-2 4.7.3-4 3.3.2-3 4.7.3-3",
    async (scene) => {
      const root = scene.createName("w");
      const matches: [filter: string, topics: string[]][] = [
        [`${root}/#`, [root, `${root}/a`, `${root}/a/b`, `${root}/`]],
        [`${root}/+`, [`${root}/a`, `${root}/`]],
        [`${root}/+/b`, [`${root}/a/b`, `${root}//b`]],
        [`${root}/A`, [`${root}/A`]],
      ];
      const topics = [
        root,
        `${root}/a`,
        `${root}/A2`,
        `${root}/a/b`,
        `${root}/`,
        `${root}//b`,
        `${root}/A`,
      ];
      const publisher = await scene.connect();
      for (const [filter, expected] of matches) {
        const client = await scene.connect();
        await client.subscribe(filter, { qos: 0 });
        for (const topic of topics) await publisher.publish(topic, "x");
        const found = new Set<string>();
        const wanted = filter.endsWith("/#")
          ? topics
          : filter.endsWith("/+")
            ? [...expected, `${root}/A2`, `${root}/A`]
            : expected;
        for (const _ of wanted) found.add((await client.next("publish")).topic);
        assert.deepEqual([...found].sort(), [...wanted].sort(), filter);
        await client.expectNothing();
      }
    },
  ),
  both(
    "filters that begin with a wildcard do not match topics that begin with $",
    "4.7.2-1",
    "4.7.2-1",
    async (scene) => {
      const name = scene.createName("d");
      const client = await scene.connect();
      await client.subscribe(`+/${name}`, { qos: 0 });
      await client.subscribe(`$d/${name}`, { qos: 0 });
      await scene.pulse.publish({ topic: `_x24d.${name}`, payload: "hidden" });
      const message = await client.next("publish");
      assert.equal(message.topic, `$d/${name}`);
      await client.expectNothing();
    },
  ),
  both(
    "an identical filter replaces the subscription and sends retained messages again",
    "3.8.4-3 3.3.1-6",
    "3.8.4-3 3.8.4-4 3.3.1-9",
    async (scene) => {
      const topic = scene.createName("t");
      const publisher = await scene.connect();
      await publisher.publish(topic, "kept", { retain: true });
      const client = await scene.connect();
      for (const qos of [0, 1]) {
        await client.subscribe(topic, { qos });
        const message = await client.next("publish");
        assert.equal(message.retain, true);
        assert.equal(message.qos, qos);
        if (qos === 1) client.send({ cmd: "puback", messageId: message.messageId });
      }
      await publisher.publish(topic, "new");
      const message = await client.next("publish");
      assert.equal(message.qos, 1);
      assert.equal(message.retain, false);
      await client.expectNothing();
    },
  ),
  both(
    "the last retained message of a topic is sent to new subscribers, also under wildcards",
    "3.3.1-5 3.3.1-7 3.3.1-8 3.3.1-9 3.3.1-12",
    "3.3.1-5 3.3.1-8 3.3.1-12",
    async (scene) => {
      const root = scene.createName("r");
      const publisher = await scene.connect();
      await publisher.publish(`${root}/a`, "old", { retain: true });
      await publisher.publish(`${root}/a`, "a", { retain: true, qos: 0 });
      await publisher.publish(`${root}/b`, "b", { retain: true });
      await publisher.publish(`${root}/a`, "not retained");
      const client = await scene.connect();
      await client.subscribe(`${root}/+`, { qos: 2 });
      await expectPayloads(client, "a", "b");
      await client.expectNothing();
    },
  ),
  both(
    "an empty retained message removes it and is delivered",
    "3.3.1-10 3.3.1-11",
    "3.3.1-6 3.3.1-7",
    async (scene) => {
      const topic = scene.createName("t");
      const publisher = await scene.connect();
      await publisher.publish(topic, "kept", { retain: true });
      const client = await scene.connect();
      await client.subscribe(topic);
      await client.next("publish");
      await publisher.publish(topic, "", { retain: true });
      const empty = await client.next("publish");
      assert.equal(empty.payload.length, 0);
      const later = await scene.connect();
      await later.subscribe(topic);
      await later.expectNothing();
    },
  ),
  five("retain handling 1 and 2", "3.3.1-10 3.3.1-11", async (scene) => {
    const topic = scene.createName("t");
    await (await scene.connect()).publish(topic, "kept", { retain: true });
    const client = await scene.connect();
    await client.subscribe(topic, { rh: 2 });
    await client.expectNothing();
    await client.subscribe(topic, { rh: 1 });
    await client.expectNothing();
    const other = await scene.connect();
    await other.subscribe(topic, { rh: 1 });
    await other.next("publish");
  }),
  five("retain as published", "3.3.1-13", async (scene) => {
    const topic = scene.createName("t");
    const client = await scene.connect();
    await client.subscribe(topic, { rap: true });
    const publisher = await scene.connect();
    await publisher.publish(topic, "r", { retain: true });
    assert.equal((await client.next("publish")).retain, true);
    await publisher.publish(topic, "n");
    assert.equal((await client.next("publish")).retain, false);
  }),
  five("no local", "3.8.3-3", async (scene) => {
    const topic = scene.createName("t");
    const client = await scene.connect();
    await client.subscribe(topic, { nl: true, qos: 1 });
    await client.publish(topic, "own");
    await (await scene.connect()).publish(topic, "other");
    assert.equal(String((await client.next("publish")).payload), "other");
  }),
  five(
    "subscription identifiers of all matching subscriptions, at the highest QoS",
    "3.3.4-2 3.3.4-3 3.3.4-4",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(topic, { qos: 0 }, { properties: { subscriptionIdentifier: 3 } });
      await client.subscribe(
        `${topic}/#`,
        { qos: 1 },
        { properties: { subscriptionIdentifier: 268_435_455 } },
      );
      await (await scene.connect()).publish(topic, "x");
      const message = await client.next("publish");
      assert.equal(message.qos, 1);
      assert.deepEqual(
        [message.properties.subscriptionIdentifier].flat().toSorted((one, other) => one - other),
        [3, 268_435_455],
      );
      await client.expectNothing();
    },
  ),
  both(
    "overlapping subscriptions deliver at the highest QoS",
    "3.3.5-1",
    "3.3.4-2",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(`${topic}/#`, { qos: 0 });
      await client.subscribe(topic, { qos: 2 });
      await (await scene.connect()).publish(topic, "x", { qos: 2 });
      assert.equal((await client.next("publish")).qos, 2);
    },
  ),
  both("a message is delivered with the lower of both QoS", "3.8.4-6", "3.8.4-8", async (scene) => {
    const topic = scene.createName("t");
    const publisher = await scene.connect();
    for (const [subscribed, published, delivered] of [
      [0, 2, 0],
      [1, 2, 1],
      [2, 1, 1],
      [2, 0, 0],
      [2, 2, 2],
    ] as const) {
      const client = await scene.connect();
      await client.subscribe(topic, { qos: subscribed });
      await publisher.publish(topic, "x", { qos: published });
      assert.equal((await client.next("publish")).qos, delivered);
      await client.drop();
    }
  }),
  both(
    "UNSUBSCRIBE ends a subscription by its exact filter, and is always answered",
    "3.10.4-1 3.10.4-2 3.10.4-4 3.10.4-5 3.10.4-6",
    "3.10.4-1 3.10.4-2 3.10.4-4 3.10.4-5 3.10.4-6 3.11.3-1 3.11.3-2",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(topic);
      await client.subscribe(`${topic}/+`);
      client.send({ cmd: "unsubscribe", messageId: 31, unsubscriptions: [`${topic}/#`, topic] });
      const unsuback = await client.next("unsuback");
      assert.equal(unsuback.messageId, 31);
      if (scene.version === 5) assert.deepEqual(unsuback.granted, [0x11, 0]);
      const publisher = await scene.connect();
      await publisher.publish(topic, "no");
      await publisher.publish(`${topic}/a`, "yes");
      await expectPayloads(client, "yes");
      await client.expectNothing();
    },
  ),
  both(
    "a message that was sent is completed after UNSUBSCRIBE",
    "3.10.4-3",
    "3.10.4-3",
    async (scene) => {
      const topic = scene.createName("t");
      const client = await scene.connect();
      await client.subscribe(topic, { qos: 2 });
      await (await scene.connect()).publish(topic, "x", { qos: 2 });
      const { messageId } = await client.next("publish");
      client.send({ cmd: "unsubscribe", messageId: 32, unsubscriptions: [topic] });
      await client.next("unsuback");
      client.send({ cmd: "pubrec", messageId });
      await client.next("pubrel");
      client.send({ cmd: "pubcomp", messageId });
      await client.expectNothing();
    },
  ),
  five("a shared subscription has a name and a filter", "4.8.2-1 4.8.2-2", async (scene) => {
    const client = await scene.connect();
    for (const filter of [
      "$share/",
      "$share//a",
      "$share/g",
      "$share/g/",
      "$share/g+/a",
      "$share/#/a",
    ]) {
      assert.deepEqual((await client.subscribe(filter)).granted, [0x8f], filter);
    }
  }),
  five(
    "each message of a shared subscription goes to one member, at its QoS",
    "4.8.2-3",
    async (scene) => {
      const topic = scene.createName("t");
      const group = scene.createName("g");
      const members = [await scene.connect(), await scene.connect()];
      const publisher = await scene.connect();
      await publisher.publish(topic, "creates the topic");
      for (const [qos, member] of members.entries()) {
        await member.subscribe(`$share/${group}/${topic}`, { qos });
      }
      for (let index = 0; index < 10; index++) await publisher.publish(topic, String(index));
      const texts: string[] = [];
      for (const [qos, member] of members.entries()) {
        for (let index = 0; index < 5; index++) {
          const message = await member.next("publish");
          assert.equal(message.qos, qos);
          texts.push(String(message.payload));
          if (qos === 1) member.send({ cmd: "puback", messageId: message.messageId });
        }
        await member.expectNothing();
      }
      assert.deepEqual(texts.sort(), Array.from("0123456789"));
    },
  ),
  five(
    "a QoS 1 message of a member that leaves goes to another one; a refused one to nobody",
    "4.8.2-6",
    async (scene) => {
      const topic = scene.createName("t");
      const filter = `$share/${scene.createName("g")}/${topic}`;
      const publisher = await scene.connect();
      await publisher.publish(topic, "creates the topic");
      const first = await scene.connect();
      await first.subscribe(filter, { qos: 1 });
      await publisher.publish(topic, "passed on");
      await first.next("publish");
      const second = await scene.connect();
      await second.subscribe(filter, { qos: 1 });
      await first.drop();
      const message = await second.next("publish");
      assert.equal(String(message.payload), "passed on");
      second.send({ cmd: "puback", messageId: message.messageId, reasonCode: 0x80 });
      await second.expectNothing();
      await second.drop();
      const third = await scene.connect();
      await third.subscribe(filter, { qos: 1 });
      await third.expectNothing();
    },
  ),
  five(
    "a QoS 2 message of a member that leaves stays with its session",
    "4.8.2-4 4.8.2-5",
    async (scene) => {
      const topic = scene.createName("t");
      const filter = `$share/${scene.createName("g")}/${topic}`;
      const publisher = await scene.connect();
      await publisher.publish(topic, "creates the topic");
      const clientId = scene.createName();
      const first = await scene.connectKept(clientId);
      await first.subscribe(filter, { qos: 2 });
      await publisher.publish(topic, "mine", { qos: 2 });
      const { messageId } = await first.next("publish");
      const second = await scene.connect();
      await second.subscribe(filter, { qos: 2 });
      await first.drop();
      await second.expectNothing();
      const again = await scene.connectKept(clientId);
      const message = await again.next("publish");
      assert.equal(message.messageId, messageId);
      assert.equal(message.dup, true);
    },
  ),
];
