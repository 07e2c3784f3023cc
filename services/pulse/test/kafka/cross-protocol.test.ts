// Messages published by one protocol reach subscribers of all others: HTTP and Kafka in × HTTP, SSE, WebSocket and Kafka out.
import assert from "node:assert/strict";
import { on } from "node:events";
import { after, before, describe, test } from "node:test";
import { Kafka, logLevel, type IHeaders } from "kafkajs";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { lowerCaseGuest } from "../fixture/lower-case-guest.ts";

/** A message as every face is to show it. */
interface Seen {
  topic: string;
  key: string | null;
  payload: string;
  isBinary: boolean;
  messageId: string | undefined;
  priority: number;
  headers: Record<string, string>;
  timestamp: number;
  place: string;
}

const binary = Buffer.from([0, 0xff, 0xfe, 0x80, 10]);
let pulse: PulseHere;
let kafka: Kafka;
const endings: (() => unknown)[] = [];

before(async () => {
  pulse = await startPulseHere(
    { after: (done) => endings.push(done) },
    { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "5" },
  );
  kafka = new Kafka({ brokers: [`127.0.0.1:${pulse.kafkaPort}`], logLevel: logLevel.NOTHING });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

/** Publishes a text and some bytes. */
const faces: Record<string, (topic: string) => Promise<void>> = {
  async HTTP(topic) {
    const facts = { key: "käse", priority: 7, message_id: `id of ${topic}` };
    const text = await pulse.publish({ topic, payload: "grüße", headers: { h: "ä" }, ...facts });
    assert.equal(text.status, 200);
    const encoded = { payload: binary.toString("base64"), encoding: "base64" };
    assert.equal((await pulse.publish({ topic, ...encoded })).status, 200);
  },
  async Kafka(topic) {
    const producer = kafka.producer({ idempotent: true });
    await producer.connect();
    const headers = {
      h: "ä",
      "platform-priority": "7",
      "platform-message-id": `id of ${topic}`,
    };
    // Kafka's names hold no umlauts.
    const name = topic.replaceAll("ö", "_xC3_xB6");
    await producer.send({
      topic: name,
      messages: [{ key: "käse", value: "grüße", headers }, { value: binary }],
    });
    await producer.disconnect();
  },
};

/** Reads two messages that were published before. */
const readers: Record<string, (topic: string) => Promise<Seen[]>> = {
  async HTTP(topic) {
    const { body } = await pulse.get(`/api/v1/tail?topic=${encodeURIComponent(topic)}&n=10`);
    return (body.messages as Record<string, unknown>[]).map(fromJson);
  },
  async SSE(topic) {
    const path = `/api/v1/subscribe/${encodeURIComponent(topic)}?from=earliest`;
    const reader = await EventReader.open(`${pulse.url}${path}`);
    const events = await reader.wait(2, 30_000);
    reader.close();
    return events.map(({ data }) => fromJson(data));
  },
  async WebSocket(topic) {
    const path = `/ws/subscribe/${encodeURIComponent(topic)}?from=earliest`;
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}${path}`);
    const seen: Seen[] = [];
    for await (const [data] of on(socket, "message")) {
      seen.push(fromJson(JSON.parse(String(data)) as Record<string, unknown>));
      if (seen.length === 2) break;
    }
    socket.close();
    return seen;
  },
  async Kafka(topic) {
    const consumer = kafka.consumer({ groupId: `readers of ${topic}`, maxWaitTimeInMs: 100 });
    const seen: Seen[] = [];
    const done = Promise.withResolvers<void>();
    await consumer.connect();
    await consumer.subscribe({ topics: [topic.replaceAll("ö", "_xC3_xB6")], fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ topic: name, partition, message }) => {
        const {
          "platform-message-id": id,
          "platform-priority": priority,
          ...headers
        } = texts(message.headers ?? {});
        seen.push({
          topic: name.replaceAll("_xC3_xB6", "ö"),
          key: message.key?.toString() ?? null,
          ...payloadOf(message.value!),
          messageId: id,
          priority: Number(priority ?? 0),
          headers,
          timestamp: Number(message.timestamp),
          place: `${partition}:${message.offset}`,
        });
        if (seen.length === 2) done.resolve();
      },
    });
    await done.promise;
    await consumer.disconnect();
    return seen;
  },
};

function texts(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function payloadOf(bytes: Buffer): { payload: string; isBinary: boolean } {
  const isBinary = !Buffer.from(bytes.toString()).equals(bytes);
  return { payload: bytes.toString(isBinary ? "base64" : "utf8"), isBinary };
}

function fromJson(data: Record<string, unknown>): Seen {
  return {
    topic: data["topic"] as string,
    key: data["key"] as string | null,
    payload: data["payload"] as string,
    isBinary: data["encoding"] === "base64",
    messageId: data["message_id"] as string,
    priority: data["priority"] as number,
    headers: data["headers"] as Record<string, string>,
    timestamp: data["timestamp"] as number,
    place: `${Number(data["partition"])}:${Number(data["offset"])}`,
  };
}

for (const [incoming, publish] of Object.entries(faces)) {
  describe(`messages published over ${incoming}`, () => {
    const topic = `matrix.ö.${incoming}`;
    const startedAt = Date.now();
    before(() => publish(topic));

    for (const [outgoing, read] of Object.entries(readers)) {
      test(`are read over ${outgoing}`, { timeout: 60_000 }, async () => {
        const [text, bytes] = await read(topic);
        assert.ok(text!.timestamp >= startedAt && text!.timestamp <= Date.now());
        assert.deepEqual(
          { ...text, timestamp: 0 },
          {
            topic,
            key: "käse",
            payload: "grüße",
            isBinary: false,
            messageId: `id of ${topic}`,
            priority: 7,
            headers: { h: "ä" },
            timestamp: 0,
            place: "0:0",
          },
        );
        assert.deepEqual(
          [bytes!.payload, bytes!.isBinary, bytes!.key, bytes!.place, bytes!.priority],
          [binary.toString("base64"), true, null, "0:1", 0],
        );
        // Without an id a message is called by its place.
        if (incoming === "Kafka" && outgoing !== "Kafka") assert.equal(bytes!.messageId, "0:1");
      });
    }
  });
}

test("a waiting subscriber gets messages of Kafka producers", async () => {
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/live`);
  await faces["Kafka"]!("live");
  await reader.wait(2, 30_000);
  assert.deepEqual(reader.payloads(), ["grüße", binary.toString("base64")]);
  reader.close();
});

test("messages fetched by a Kafka client do not count against HTTP publishers", async () => {
  const topic = "backlog";
  for (let index = 0; index < 5; index++) {
    assert.equal((await pulse.publish({ topic, payload: `${index}` })).status, 200);
  }
  assert.equal((await pulse.publish({ topic, payload: "one more" })).status, 503);
  await readers["Kafka"]!(topic);
  assert.equal((await pulse.publish({ topic, payload: "one more" })).status, 200);
});

test("a group belongs to the protocol that used it first", async () => {
  await faces["Kafka"]!("owned");
  await readers["Kafka"]!("owned");
  const group = encodeURIComponent("readers of owned");
  const { status } = await pulse.get(`/api/v1/subscribe/owned?group=${group}`);
  assert.equal(status, 409);
});

test("schema and transform of a topic apply to Kafka producers, and dead letters are available over HTTP", async () => {
  const schema = { amount: "number" };
  assert.equal((await pulse.post("/api/v1/topics/strict/schema", schema)).status, 200);
  const producer = kafka.producer();
  await producer.connect();
  await assert.rejects(producer.send({ topic: "strict", messages: [{ value: "{}" }] }));
  await producer.send({ topic: "strict", messages: [{ value: '{"amount":1}' }] });

  const registered = await pulse.get("/api/v1/topics/shaped/transform", {
    method: "POST",
    headers: { "content-type": "application/wasm" },
    body: new Uint8Array(lowerCaseGuest),
  });
  assert.equal(registered.status, 200, JSON.stringify(registered.body));
  await producer.send({ topic: "shaped", messages: [{ value: "ABC" }, { value: "!trap" }] });
  await producer.disconnect();
  const shaped = await pulse.get("/api/v1/tail?topic=shaped&n=10");
  const payloads = (shaped.body.messages as { payload: string }[]).map(({ payload }) => payload);
  assert.deepEqual(payloads, ["abc"]);
  const letters = await pulse.get("/api/v1/tail?topic=shaped.dlq&n=10");
  const envelope = JSON.parse(letters.body.messages[0].payload as string) as Record<string, string>;
  assert.equal(envelope["original_payload"], "!trap");
});
