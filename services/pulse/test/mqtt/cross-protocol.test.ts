// Messages of HTTP and Kafka received over MQTT, and messages of MQTT received over HTTP, server-sent events, WebSocket and
// Kafka: every property arrives as message-map.ts says.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Kafka, logLevel, type IHeaders, type KafkaMessage } from "kafkajs";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { RawClient, type Received } from "./client.ts";

const PAYLOADS: readonly [name: string, payload: Buffer][] = [
  ["text", Buffer.from("grüße")],
  ["bytes", Buffer.from([0, 0xff, 0xfe, 0x80, 0, 10])],
  ["empty", Buffer.alloc(0)],
  ["large", Buffer.alloc(500_000, "é")],
];
const HEADERS = {
  "content-type": "text/plain",
  "reply-to": "answers/here",
  "correlation-id": "c-1",
  ключ: "значение",
  traceparent: "00-1-2-01",
};

let pulse: PulseHere;
let kafka: Kafka;
const endings: (() => unknown)[] = [];

before(async () => {
  pulse = await startPulseHere(
    { after: (done) => endings.push(done) },
    { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" },
  );
  kafka = new Kafka({ brokers: [`127.0.0.1:${pulse.kafkaPort}`], logLevel: logLevel.NOTHING });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

async function connect(): Promise<RawClient> {
  const client = await RawClient.open(pulse.mqttPort, 5);
  endings.push(() => client.socket.destroy());
  await client.connect();
  return client;
}

const publishers: Record<string, (name: string, key: string, payload: Buffer) => Promise<unknown>> =
  {
    HTTP: (topic, key, payload) =>
      pulse.publish({
        topic,
        key,
        payload: payload.toString("base64"),
        encoding: "base64",
        headers: HEADERS,
        ttl_ms: 600_000,
        priority: 3,
      }),
    async Kafka(name, key, value) {
      const producer = kafka.producer();
      await producer.connect();
      const headers = { ...HEADERS, "platform-expires-at": String(Date.now() + 600_000) };
      const topic = Array.from(Buffer.from(name), (byte) => {
        const text = String.fromCharCode(byte);
        return /[\w.-]/.test(text) ? text : `_x${byte.toString(16).toUpperCase()}`;
      }).join("");
      await producer.send({ topic, messages: [{ key, value, headers }] });
      await producer.disconnect();
    },
  };

for (const [protocol, publish] of Object.entries(publishers)) {
  test(`${protocol} to MQTT`, async () => {
    for (const [name, payload] of PAYLOADS) {
      const topic = `from.${protocol}.ä.${name}`;
      await pulse.post("/api/v1/topics", { name: topic });
      const client = await connect();
      await client.subscribe(topic.replaceAll(".", "/"), { qos: 1 });
      await publish(topic, "käse", payload);
      const message = await client.next("publish");
      assert.equal(message.topic, `from/${protocol}/ä/${name}`);
      assert.ok(payload.equals(message.payload), name);
      const { messageExpiryInterval, userProperties, ...properties } = message.properties;
      assert.ok(messageExpiryInterval > 500 && messageExpiryInterval <= 600);
      assert.deepEqual(properties, {
        contentType: "text/plain",
        responseTopic: "answers/here",
        correlationData: Buffer.from("c-1"),
      });
      assert.deepEqual(
        { ...userProperties },
        { ключ: "значение", traceparent: "00-1-2-01", "platform-key": "käse" },
      );
    }
  });
}

test("MQTT to HTTP, server-sent events, WebSocket and Kafka", async () => {
  const client = await connect();
  for (const [name, payload] of PAYLOADS) {
    const topic = `mqtt.${name}`;
    await pulse.post("/api/v1/topics", { name: topic });
    const events = await EventReader.open(`${pulse.url}/api/v1/subscribe/${topic}`);
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/${topic}`);
    await once(socket, "open");
    const framed = once(socket, "message");
    const properties = {
      contentType: "text/plain",
      responseTopic: "answers/here",
      correlationData: Buffer.from("c-1"),
      messageExpiryInterval: 600,
      payloadFormatIndicator: false,
      userProperties: {
        ключ: "значение",
        traceparent: "00-1-2-01",
        "platform-key": "käse",
        "platform-priority": "3",
        "platform-message-id": `id-${name}`,
      },
    };
    await client.publish(topic.replaceAll(".", "/"), payload, { properties });
    const again = await client.publish(topic.replaceAll(".", "/"), payload, { properties });
    assert.equal(again.reasonCode ?? 0, 0, "a duplicate is accepted, and not stored again");
    const { body } = await pulse.get(`/api/v1/tail?topic=${topic}&n=10`);
    assert.equal(body.messages.length, 1);
    const [frame] = (await framed) as [Buffer];
    const [event] = await events.wait(1);
    events.close();
    socket.close();
    for (const seen of [body.messages[0], event!.data, JSON.parse(String(frame))])
      check(seen, name, payload);
    const record = await readRecord(topic);
    assert.ok(payload.equals(record.value ?? Buffer.alloc(0)));
    assert.equal(String(record.key), "käse");
    const {
      "platform-mqtt": mqtt,
      "platform-expires-at": expires,
      ...headers
    } = toTexts(record.headers!);
    assert.deepEqual(headers, {
      ...HEADERS,
      "platform-priority": "3",
      "platform-message-id": `id-${name}`,
    });
    assert.ok(mqtt !== undefined && Number(expires) > Date.now());
  }
});

function check(seen: Received, name: string, payload: Buffer): void {
  const bytes = Buffer.from(seen.payload, seen.encoding === "base64" ? "base64" : "utf8");
  assert.ok(payload.equals(bytes), name);
  assert.equal(seen.key, "käse");
  assert.equal(seen.priority, 3);
  assert.equal(seen.message_id, `id-${name}`);
  assert.deepEqual(seen.headers, HEADERS);
}

function toTexts(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([key, value]) => [key, String(value)]));
}

async function readRecord(topic: string): Promise<KafkaMessage> {
  const consumer = kafka.consumer({ groupId: `judge of ${topic}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const found = Promise.withResolvers<KafkaMessage>();
  await consumer.run({ eachMessage: async ({ message }) => found.resolve(message) });
  const message = await found.promise;
  await consumer.disconnect();
  return message;
}
