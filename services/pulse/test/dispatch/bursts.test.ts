// Bursts of clients that are faster than their consumers: all messages arrive, or are refused before they are acknowledged.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { PulseHere } from "../fixture/pulse-here.ts";
import { mqttPacket, RawClient } from "../mqtt/client.ts";
import { StompClient } from "../stomp/client.ts";

/** Messages of a burst: several times the limit of waiting messages. */
const MESSAGES = Number(process.env["PLATFORM_PULSE_BURST_MESSAGES"] ?? 5_000);
const IS_LONG = process.env["PLATFORM_PULSE_BURST_MESSAGES"] !== undefined;
const LIMIT = 1_000;
const TIMEOUT = { timeout: 120_000 + MESSAGES * 10 };
/** The consumer rests after so many messages. */
const REST = { messages: 200, ms: 10 };

const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));
const pulse = new PulseHere(folder, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: String(LIMIT) });

before(() => pulse.start());
after(async () => {
  await pulse.end();
});

async function connectStomp(t: TestContext): Promise<StompClient> {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  return client;
}

async function connectMqtt(t: TestContext, version: 4 | 5): Promise<RawClient> {
  const client = await RawClient.open(pulse.mqttPort, version);
  t.after(() => client.socket.destroy());
  await client.connect();
  return client;
}

test("STOMP: a burst is paced by a slow consumer", TIMEOUT, async (t) => {
  const consumer = await connectStomp(t);
  const destination = "/queue/stomp.burst";
  await consumer.ask("SUBSCRIBE", { destination, id: "1", ack: "client-individual" });
  const publisher = await connectStomp(t);
  const since = performance.now();
  for (let index = 0; index < MESSAGES; index++) {
    const receipt = index === MESSAGES - 1 ? { receipt: "last" } : {};
    publisher.send("SEND", { destination, ...receipt }, String(index));
  }
  const seen = new Set<string>();
  while (seen.size < MESSAGES) {
    const { body, headers } = await consumer.message();
    seen.add(body);
    consumer.send("ACK", { id: headers["ack"]! });
    if (seen.size % REST.messages === 0) await sleep(REST.ms);
  }
  assert.equal((await publisher.next()).command, "RECEIPT");
  t.diagnostic(`${MESSAGES} messages in ${Math.round(performance.now() - since)} ms`);
});

test(
  "STOMP: what was sent before the connection closed is handled to the end",
  TIMEOUT,
  async (t) => {
    const consumer = await connectStomp(t);
    const destination = "/queue/stomp.gone";
    await consumer.ask("SUBSCRIBE", { destination, id: "1", ack: "client-individual" });
    const publisher = await connectStomp(t);
    const count = 3_000;
    for (let index = 0; index < count; index++) publisher.send("SEND", { destination }, `${index}`);
    publisher.send("DISCONNECT");
    publisher.socket.end();
    const seen = new Set<string>();
    while (seen.size < count) {
      const { body, headers } = await consumer.message();
      seen.add(body);
      consumer.send("ACK", { id: headers["ack"]! });
    }
  },
);

test("STOMP: what nobody takes is refused at the limit, after what had room", async (t) => {
  const client = await connectStomp(t);
  const destination = "/queue/stomp.full";
  await client.ask("SUBSCRIBE", { destination, id: "1", ack: "client-individual" });
  await client.ask("UNSUBSCRIBE", { id: "1" });
  const publisher = await connectStomp(t);
  for (let index = 0; index < LIMIT + 100; index++) {
    publisher.send("SEND", { destination, receipt: String(index) }, String(index));
  }
  for (let index = 0; index < LIMIT; index++) {
    assert.equal((await publisher.next()).headers["receipt-id"], String(index));
  }
  const { headers } = await publisher.error();
  assert.deepEqual([headers["code"], headers["receipt-id"]], ["ERR_BACKPRESSURE", String(LIMIT)]);
});

for (const version of [4, 5] as const) {
  test(`MQTT ${version}: a burst is paced by a slow consumer`, TIMEOUT, async (t) => {
    const consumer = await connectMqtt(t, version);
    const topic = `mqtt/burst/${version}`;
    // A shared subscription begins with the topic.
    const publisher = await connectMqtt(t, version);
    await publisher.publish(topic, "first");
    await consumer.subscribe(`$share/slow/${topic}`, { qos: 1 });
    const since = performance.now();
    const progress = { acknowledged: 0 };
    const collect = async () => {
      for (; progress.acknowledged < MESSAGES; progress.acknowledged++) {
        const { reasonCode = 0 } = await publisher.next("puback");
        assert.equal(reasonCode, 0);
      }
    };
    const send = async () => {
      for (let index = 0; index < MESSAGES; index++) {
        // A client may have as many unacknowledged messages as the receive maximum.
        while (progress.acknowledged <= index - 900) await sleep(1);
        const packet = { topic, payload: String(index), qos: 1, dup: false, retain: false };
        publisher.send({ cmd: "publish", ...packet, messageId: (index % 65_535) + 1 });
      }
    };
    const seen = new Set<string>();
    const consume = async () => {
      while (seen.size < MESSAGES) {
        const { payload, messageId } = await consumer.next("publish");
        seen.add(String(payload));
        consumer.send({ cmd: "puback", messageId, reasonCode: 0 });
        if (seen.size % REST.messages === 0) await sleep(REST.ms);
      }
    };
    await Promise.all([collect(), send(), consume()]);
    t.diagnostic(`${MESSAGES} messages in ${Math.round(performance.now() - since)} ms`);
  });
}

test("MQTT: QoS 0 is paced as well, also that of a client that has left", TIMEOUT, async (t) => {
  const consumer = await connectMqtt(t, 5);
  const topic = "mqtt/burst/0";
  const publisher = await connectMqtt(t, 5);
  await publisher.publish(topic, "first");
  await consumer.subscribe(`$share/slow/${topic}`, { qos: 1 });
  const packets = Array.from({ length: MESSAGES }, (_, index) =>
    mqttPacket.generate(
      { cmd: "publish", topic, payload: String(index), qos: 0, dup: false, retain: false },
      { protocolVersion: 5 },
    ),
  );
  publisher.socket.end(Buffer.concat([...packets, Buffer.from([0xe0, 0])]));
  const seen = new Set<string>();
  while (seen.size < MESSAGES) {
    const { payload, messageId, qos } = await consumer.next("publish");
    seen.add(String(payload));
    if (qos > 0) consumer.send({ cmd: "puback", messageId, reasonCode: 0 });
    if (seen.size % REST.messages === 0) await sleep(REST.ms);
  }
});

test("MQTT: what nobody takes is refused at the limit", async (t) => {
  const publisher = await connectMqtt(t, 5);
  const topic = "mqtt/full";
  await publisher.publish(topic, "first");
  const consumer = await connectMqtt(t, 5);
  await consumer.subscribe(`$share/full/${topic}`, { qos: 1 });
  await consumer.disconnect();
  for (let index = 0; index < LIMIT; index++) {
    assert.equal((await publisher.publish(topic, "x")).reasonCode, 0, String(index));
  }
  assert.equal((await publisher.publish(topic, "x")).reasonCode, 0x97);
});

test(
  "a consumer that is there and takes nothing holds publishers for half a minute at most",
  { ...TIMEOUT, skip: IS_LONG ? false : "only in the long form" },
  async (t) => {
    const consumer = await connectStomp(t);
    const destination = "/queue/stomp.stalled";
    await consumer.ask("SUBSCRIBE", { destination, id: "1", ack: "client-individual" });
    const publisher = await connectMqtt(t, 5);
    const topic = "stomp/stalled";
    for (let index = 0; index < LIMIT; index++) await publisher.publish(topic, "x");
    const since = performance.now();
    const packet = { topic, payload: "x", qos: 1, messageId: 9, dup: false, retain: false };
    publisher.send({ cmd: "publish", ...packet });
    while (publisher.waiting === 0) await sleep(100);
    assert.equal((await publisher.next("puback")).reasonCode, 0x97);
    assert.ok(performance.now() - since < 40_000);
  },
);
