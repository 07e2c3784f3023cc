// Messages of each protocol, received by each: what is lost is what the map says.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Kafka, logLevel, type IHeaders } from "kafkajs";
import { connectAsync } from "mqtt";
import { WebSocket } from "ws";
import { encodeFrame } from "../src/stomp/frame/frame.ts";
import { MESSAGE_MAP } from "../src/message/message-map.ts";
import { toLevelName } from "../src/topic/level-name.ts";
import { toKafkaName } from "../src/topic/name.ts";
import { EventReader } from "./fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "./fixture/pulse-here.ts";
import { StompClient } from "./stomp/client.ts";

const MEBIBYTE = 1024 * 1024;
const PAYLOADS = [Buffer.from([0, 0xff, 0, 10, 13]), Buffer.alloc(MEBIBYTE, "ö"), Buffer.alloc(0)];
const HEADERS = { farbe: "grün", größe: "XL", empty: "" };
const SHARED = {
  "content-type": "application/x-test",
  "reply-to": "answers",
  "correlation-id": "c-7",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};
const KEY = "käse";
const PRIORITY = 7;
const TTL_MS = 3_600_000;

/** A message as received; undefined for what the protocol does not show. */
interface Received {
  payload: Buffer;
  key?: string | undefined;
  headers: Record<string, string>;
  id?: string | undefined;
  priority?: number | undefined;
  expiresAt?: number | undefined;
}

let pulse: PulseHere;
let kafka: Kafka;
const endings: (() => unknown)[] = [];

before(async () => {
  pulse = await startPulseHere(
    { after: (done) => endings.push(done) },
    { PLATFORM_PULSE_MESSAGE_BYTES_MAX: String(2 * MEBIBYTE) },
  );
  kafka = new Kafka({ brokers: [`127.0.0.1:${pulse.kafkaPort}`], logLevel: logLevel.NOTHING });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

const idOf = (topic: string, payload: Buffer) => `${topic} ${payload.length}`;

const publishers: Record<string, (topic: string) => Promise<void>> = {
  async HTTP(topic) {
    for (const payload of PAYLOADS) {
      const { status } = await pulse.publish({
        topic,
        payload: payload.toString("base64"),
        encoding: "base64",
        key: KEY,
        headers: { ...HEADERS, ...SHARED },
        message_id: idOf(topic, payload),
        priority: PRIORITY,
        ttl_ms: TTL_MS,
      });
      assert.equal(status, 200);
    }
  },
  async Kafka(topic) {
    const producer = kafka.producer();
    await producer.connect();
    for (const value of PAYLOADS) {
      const headers = {
        ...HEADERS,
        ...SHARED,
        "platform-message-id": idOf(topic, value),
        "platform-priority": String(PRIORITY),
        "platform-expires-at": String(Date.now() + TTL_MS),
      };
      await producer.send({ topic: toKafkaName(topic), messages: [{ key: KEY, value, headers }] });
    }
    await producer.disconnect();
  },
  async MQTT(topic) {
    const client = await connectAsync(`mqtt://127.0.0.1:${pulse.mqttPort}`, { protocolVersion: 5 });
    for (const payload of PAYLOADS) {
      await client.publishAsync(toLevelName(topic), payload, {
        qos: 1,
        properties: {
          contentType: SHARED["content-type"],
          responseTopic: SHARED["reply-to"],
          correlationData: Buffer.from(SHARED["correlation-id"]),
          messageExpiryInterval: TTL_MS / 1_000,
          userProperties: {
            ...HEADERS,
            traceparent: SHARED.traceparent,
            "platform-key": KEY,
            "platform-message-id": idOf(topic, payload),
            "platform-priority": String(PRIORITY),
          },
        },
      });
    }
    await client.endAsync();
  },
  async STOMP(topic) {
    const client = await StompClient.connect(pulse.stompPort);
    for (const payload of PAYLOADS)
      await client.ask("SEND", toSendHeaders(topic, payload), payload);
    client.close();
  },
  async WebSocket(topic) {
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/stomp`, "v12.stomp");
    let answers = "";
    socket.on("message", (data: Buffer) => (answers += data.toString()));
    await new Promise((resolve) => socket.once("open", resolve));
    socket.send("CONNECT\naccept-version:1.2\n\n\0");
    for (const payload of PAYLOADS) {
      const headers = { ...toSendHeaders(topic, payload), receipt: `r${payload.length}` };
      const length = ["content-length", String(payload.length)] as const;
      socket.send(encodeFrame("SEND", [...Object.entries(headers), length], "1.2", payload));
    }
    while (answers.split("RECEIPT").length <= PAYLOADS.length) await sleep(20);
    socket.close();
  },
};

function toSendHeaders(topic: string, payload: Buffer): Record<string, string> {
  return {
    destination: `/topic/${topic}`,
    ...HEADERS,
    ...SHARED,
    "platform-key": KEY,
    "platform-message-id": idOf(topic, payload),
    priority: String(PRIORITY),
    ttl: String(TTL_MS),
  };
}

/** Subscribes; the returned function collects the messages. */
const receivers: Record<string, (topic: string) => Promise<() => Promise<Received[]>>> = {
  async SSE(topic) {
    const path = `/api/v1/subscribe/${encodeURIComponent(topic)}`;
    const reader = await EventReader.open(`${pulse.url}${path}`);
    endings.push(() => reader.close());
    return async () => (await reader.wait(PAYLOADS.length)).map(({ data }) => fromJson(data));
  },
  async "WebSocket subscription"(topic) {
    const path = `/ws/subscribe/${encodeURIComponent(topic)}`;
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}${path}`);
    const seen: Received[] = [];
    socket.on("message", (data: Buffer) => {
      seen.push(fromJson(JSON.parse(data.toString()) as Record<string, unknown>));
    });
    await new Promise((resolve) => socket.once("open", resolve));
    endings.push(() => socket.close());
    return () => collect(seen);
  },
  async Kafka(topic) {
    return async () => {
      const consumer = kafka.consumer({ groupId: `readers of ${topic}`, maxWaitTimeInMs: 100 });
      const seen: Received[] = [];
      await consumer.connect();
      await consumer.subscribe({ topics: [toKafkaName(topic)], fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message }) => {
          const given = toTexts(message.headers ?? {});
          const { "platform-message-id": id, ...rest } = given;
          const {
            "platform-priority": priority,
            "platform-expires-at": expiresAt,
            ...headers
          } = rest;
          const key = message.key?.toString();
          const numbers = { priority: Number(priority), expiresAt: Number(expiresAt) };
          seen.push({ payload: message.value!, key, headers, id, ...numbers });
        },
      });
      await collect(seen);
      await consumer.disconnect();
      return seen;
    };
  },
  async MQTT(topic) {
    const client = await connectAsync(`mqtt://127.0.0.1:${pulse.mqttPort}`, { protocolVersion: 5 });
    endings.push(() => client.end(true));
    const seen: Received[] = [];
    client.on("message", (_topic, payload, { properties = {} }) => {
      const { "platform-key": key, ...user } = { ...properties.userProperties } as Record<
        string,
        string
      >;
      const headers = {
        ...user,
        "content-type": properties.contentType ?? "",
        "reply-to": properties.responseTopic ?? "",
        "correlation-id": properties.correlationData?.toString() ?? "",
      };
      const expiresAt = Date.now() + (properties.messageExpiryInterval ?? 0) * 1_000;
      seen.push({ payload, key, headers, expiresAt });
    });
    await client.subscribeAsync(toLevelName(topic), { qos: 1 });
    return () => collect(seen);
  },
  async STOMP(topic) {
    const client = await StompClient.connect(pulse.stompPort);
    endings.push(() => client.close());
    await client.ask("SUBSCRIBE", { destination: `/topic/${topic}`, id: "1" });
    return async () => {
      const seen: Received[] = [];
      while (seen.length < PAYLOADS.length) {
        const { headers, bytes } = await client.message();
        const { "platform-key": key, "message-id": id, priority, expires } = headers;
        const numbers = { priority: Number(priority), expiresAt: Number(expires) };
        seen.push({ payload: bytes, key, headers, id, ...numbers });
      }
      return seen;
    };
  },
};

async function collect(seen: Received[]): Promise<Received[]> {
  for (let turn = 0; turn < 1_500 && seen.length < PAYLOADS.length; turn++) await sleep(20);
  assert.equal(seen.length, PAYLOADS.length);
  return seen;
}

function fromJson(data: Record<string, unknown>): Received {
  const encoding = data["encoding"] === "base64" ? "base64" : "utf8";
  return {
    payload: Buffer.from(data["payload"] as string, encoding),
    key: data["key"] as string,
    headers: data["headers"] as Record<string, string>,
    id: data["message_id"] as string,
    priority: data["priority"] as number,
  };
}

function toTexts(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** Properties of the map that are not as they were published. */
function findLosses(topic: string, payload: Buffer, { headers, ...received }: Received): string[] {
  const expiresInMs = (received.expiresAt ?? 0) - Date.now();
  const kept: Record<string, boolean> = {
    payload: received.payload.equals(payload),
    key: received.key === KEY,
    headers: Object.entries(HEADERS).every(([name, value]) => headers[name] === value),
    "content type": headers["content-type"] === SHARED["content-type"],
    "reply address": headers["reply-to"] === SHARED["reply-to"],
    correlation: headers["correlation-id"] === SHARED["correlation-id"],
    "trace context": headers["traceparent"] === SHARED.traceparent,
    id: received.id === idOf(topic, payload),
    priority: received.priority === PRIORITY,
    expiry: expiresInMs > TTL_MS - 60_000 && expiresInMs <= TTL_MS + 1_000,
  };
  return Object.keys(kept).filter((property) => kept[property] !== true);
}

/** Properties that the map says a protocol does not show. */
function listLosses(column: "http" | "kafka" | "mqtt" | "stomp"): string[] {
  const tested = MESSAGE_MAP.filter(
    ({ property }) => !/^(topic|delay|time|retries|partition|QoS)/.test(property),
  );
  const lost = tested.filter((row) => /^(?:—|set by)|not shown/.test(row[column]));
  return lost.map(({ property }) => property);
}

const columns = {
  SSE: "http",
  "WebSocket subscription": "http",
  Kafka: "kafka",
  MQTT: "mqtt",
  STOMP: "stomp",
} as const;

for (const [incoming, publish] of Object.entries(publishers)) {
  describe(`published over ${incoming}`, () => {
    const topic = `matrix.ö-x.${incoming}`;
    const collectors = new Map<string, () => Promise<Received[]>>();
    before(async () => {
      for (const [outgoing, receive] of Object.entries(receivers)) {
        collectors.set(outgoing, await receive(topic));
      }
      await publish(topic);
    });
    for (const [outgoing, column] of Object.entries(columns)) {
      test(`received over ${outgoing}: the losses are those of the map`, async () => {
        const received = await collectors.get(outgoing)!();
        for (const payload of PAYLOADS) {
          const found = received.find((message) => message.payload.length === payload.length);
          assert.ok(found, `${payload.length} bytes`);
          assert.deepEqual(
            findLosses(topic, payload, found),
            listLosses(column),
            `${payload.length} bytes`,
          );
        }
      });
    }
  });
}
