// The packets of a connection take effect in the order in which they were sent (MQTT 5, section 4.6).
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { PulseHere } from "../fixture/pulse-here.ts";
import { mqttPacket, RawClient, type Received } from "./client.ts";

const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));
const pulse = new PulseHere(folder, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" });

before(() => pulse.start());
after(async () => {
  await pulse.end();
});

async function connect(t: TestContext, version: 4 | 5, packet: Received = {}): Promise<RawClient> {
  const client = await RawClient.open(pulse.mqttPort, version);
  t.after(() => client.socket.destroy());
  await client.connect(packet);
  return client;
}

/** The bytes of packets, to be sent in one write. */
function encode(version: 4 | 5, packets: Received[]): Buffer {
  const all = packets.map((packet) => mqttPacket.generate(packet, { protocolVersion: version }));
  return Buffer.concat(all);
}

function publish(topic: string, payload: string, qos: 0 | 1 | 2, more: Received = {}): Received {
  return { cmd: "publish", topic, payload, qos, messageId: 7, dup: false, retain: false, ...more };
}

function subscribe(topic: string, messageId: number): Received {
  return { cmd: "subscribe", messageId, subscriptions: [{ topic, qos: 0 }] };
}

for (const version of [4, 5] as const) {
  for (const qos of [0, 1, 2] as const) {
    const name = `${version}q${qos}`;

    test(`a SUBSCRIBE sees the retained message that was published before it (MQTT ${version}, QoS ${qos})`, async (t) => {
      for (let round = 0; round < 5; round++) {
        const topic = `order/${name}/${round}`;
        const client = await connect(t, version);
        const packets = [
          publish(topic, "kept", qos, { retain: true }),
          publish(topic, "live", qos, { messageId: 8 }),
          subscribe(topic, 1),
        ];
        client.socket.write(encode(version, packets));
        const received: Received[] = [];
        while (!received.some(({ cmd }) => cmd === "suback")) received.push(await client.next());
        received.push(await client.next());
        const messages = received.filter(({ cmd }) => cmd === "publish");
        // Section 3.3.1.3: RETAIN is 1 in a message that is sent because of a new subscription.
        const all = messages.map(({ payload, retain }) => [String(payload), retain]);
        assert.deepEqual(all, [["kept", true]]);
        await client.expectNothing();
      }
    });

    test(`an UNSUBSCRIBE follows the message that was published before it (MQTT ${version}, QoS ${qos})`, async (t) => {
      for (let round = 0; round < 5; round++) {
        const topic = `left/${name}/${round}`;
        const client = await connect(t, version);
        const packets = [
          subscribe(topic, 1),
          publish(topic, "before", qos),
          { cmd: "unsubscribe", messageId: 2, unsubscriptions: [topic] },
          publish(topic, "after", qos, { messageId: 8 }),
        ];
        client.socket.write(encode(version, packets));
        const received: Received[] = [];
        while (received.at(-1)?.cmd !== "unsuback") received.push(await client.next());
        const messages = received.filter(({ cmd }) => cmd === "publish");
        assert.deepEqual(
          messages.map(({ payload }) => String(payload)),
          ["before"],
        );
        if (qos > 0) await client.next(qos === 1 ? "puback" : "pubrec");
        await client.expectNothing();
      }
    });
  }

  test(`a DISCONNECT follows all messages before it, also those with QoS 0 (MQTT ${version})`, async (t) => {
    const watcher = await connect(t, version);
    await watcher.subscribe(`bye${version}/#`);
    const will = { topic: `bye${version}/will`, payload: "will", qos: 0, retain: false };
    const client = await connect(t, version, { will });
    const count = 3_000;
    const packets = Array.from({ length: count }, (_, index) =>
      publish(`bye${version}/${index % 3}`, String(index), 0),
    );
    packets.push({ cmd: "disconnect", reasonCode: 0 });
    client.socket.end(encode(version, packets));
    const seen = new Set<string>();
    while (seen.size < count) seen.add(String((await watcher.next("publish")).payload));
    assert.ok(!seen.has("will"));
    await watcher.expectNothing();
  });
}

test("the will of a DISCONNECT follows the messages before it, which are acknowledged", async (t) => {
  const watcher = await connect(t, 5);
  await watcher.subscribe("will/#");
  const will = { topic: "will/of", payload: "will", qos: 0, retain: false };
  const client = await connect(t, 5, { will });
  const count = 20;
  const packets: Received[] = Array.from({ length: count }, (_, index) =>
    publish(`will/new${index}`, String(index), 1, { messageId: index + 1 }),
  );
  packets.push({ cmd: "disconnect", reasonCode: 4 });
  client.socket.write(encode(5, packets));
  for (let index = 0; index < count; index++) await client.next("puback");
  await client.closed();
  const seen: string[] = [];
  while (seen.length <= count) seen.push(String((await watcher.next("publish")).payload));
  assert.equal(seen.at(-1), "will");
});

test("a PUBREL that is sent together with its PUBLISH is answered after it, and the message comes once", async (t) => {
  const watcher = await connect(t, 5);
  await watcher.subscribe("once");
  const client = await connect(t, 5, {
    clientId: "once",
    clean: false,
    properties: { sessionExpiryInterval: 600 },
  });
  const exchange = [publish("once", "1", 2), { cmd: "pubrel", messageId: 7 }];
  client.socket.write(encode(5, [...exchange, ...exchange]));
  for (const type of ["pubrec", "pubcomp", "pubrec", "pubcomp"]) await client.next(type);
  await watcher.next("publish");
  await watcher.next("publish");
  await watcher.expectNothing();
});
