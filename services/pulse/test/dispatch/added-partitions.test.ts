// Partitions that are added to a topic: every kind of subscription receives their messages, from the first one on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { RawClient } from "../mqtt/client.ts";
import { type Answer, StompClient } from "../stomp/client.ts";

const PARTITIONS = 4;

async function start(t: TestContext) {
  const pulse = await startPulseHere(t);
  const kafka = () =>
    new Kafka({ brokers: [`127.0.0.1:${pulse.kafkaPort}`], logLevel: logLevel.NOTHING });
  const grow = async (topic: string) => {
    const admin = kafka().admin();
    await admin.connect();
    await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS }] });
    await admin.disconnect();
  };
  /** One message in each partition; returns the payloads. */
  const publish = async (topic: string, prefix: string): Promise<string[]> => {
    const producer = kafka().producer();
    await producer.connect();
    const messages = Array.from({ length: PARTITIONS }, (_, partition) => ({
      partition,
      value: `${prefix}${partition}`,
    }));
    await producer.send({ topic, messages });
    await producer.disconnect();
    return messages.map(({ value }) => value);
  };
  return { pulse, grow, publish };
}

/** Returns the payloads of the next messages, acknowledged. */
type Receive = (count: number) => Promise<string[]>;

async function receiveEvents(t: TestContext, pulse: PulseHere, path: string): Promise<Receive> {
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/${path}`);
  t.after(() => reader.close());
  let taken = 0;
  return async (count) => {
    await reader.wait((taken += count));
    return reader
      .payloads()
      .slice(taken - count, taken)
      .map(String);
  };
}

async function receiveFrames(t: TestContext, pulse: PulseHere, path: string): Promise<Receive> {
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/${path}`);
  t.after(() => socket.terminate());
  const frames: string[] = [];
  socket.on("message", (data: Buffer) => {
    const { payload, message_id: ack } = JSON.parse(String(data)) as Record<string, string>;
    frames.push(payload!);
    if (path.includes("ack=manual")) socket.send(JSON.stringify({ ack }));
  });
  await once(socket, "open");
  return async (count) => {
    while (frames.length < count)
      await once(socket, "message", { signal: AbortSignal.timeout(30_000) });
    return frames.splice(0, count);
  };
}

async function receivePackets(
  t: TestContext,
  pulse: PulseHere,
  filter: string,
  qos: number,
  session: object = {},
): Promise<Receive & { client: RawClient }> {
  const client = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => client.socket.destroy());
  const { sessionPresent } = await client.connect(session);
  if (!sessionPresent) await client.subscribe(filter, { qos });
  const receive = async (count: number) => {
    const payloads: string[] = [];
    while (payloads.length < count) {
      const packet = await client.next("publish");
      payloads.push(String(packet.payload));
      if (packet.qos === 1) client.send({ cmd: "puback", messageId: packet.messageId });
    }
    return payloads;
  };
  return Object.assign(receive, { client });
}

async function receiveMessages(
  t: TestContext,
  pulse: PulseHere,
  destination: string,
  headers: Record<string, string>,
): Promise<Receive> {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  client.send("SUBSCRIBE", { id: "s", destination, receipt: "r", ...headers });
  const early: Answer[] = [];
  for (let frame = await client.next(); frame.command !== "RECEIPT"; frame = await client.next()) {
    early.push(frame);
  }
  return async (count) => {
    const payloads: string[] = [];
    while (payloads.length < count) {
      const { body, headers: own } = early.shift() ?? (await client.message());
      payloads.push(body);
      if (own["ack"] !== undefined) client.send("ACK", { id: own["ack"] });
    }
    return payloads;
  };
}

test("open subscriptions of every protocol receive the messages of added partitions", async (t) => {
  const { pulse, grow, publish } = await start(t);
  await pulse.post("/api/v1/topics", { name: "grow.a" });
  const receivers: Record<string, Receive> = {
    "server-sent events": await receiveEvents(t, pulse, "grow.a"),
    "server-sent events, pattern": await receiveEvents(t, pulse, "grow.*"),
    "server-sent events, group": await receiveEvents(t, pulse, "grow.a?group=events"),
    WebSocket: await receiveFrames(t, pulse, "grow.a"),
    "WebSocket, group": await receiveFrames(t, pulse, "grow.a?group=frames&ack=manual"),
    "MQTT, QoS 0": await receivePackets(t, pulse, "grow/a", 0),
    "MQTT, QoS 1": await receivePackets(t, pulse, "grow/a", 1),
    "MQTT, wildcard": await receivePackets(t, pulse, "grow/+", 1),
    "MQTT, shared": await receivePackets(t, pulse, "$share/packets/grow/a", 1),
    "MQTT, durable session": await receivePackets(t, pulse, "grow/#", 1, {
      clientId: "stays",
      properties: { sessionExpiryInterval: 3_600 },
    }),
    STOMP: await receiveMessages(t, pulse, "/topic/grow.a", {}),
    "STOMP, acknowledged": await receiveMessages(t, pulse, "grow.a", { ack: "client-individual" }),
    "STOMP, pattern": await receiveMessages(t, pulse, "grow.*", {}),
    "STOMP, acknowledged pattern": await receiveMessages(t, pulse, "grow.*", { ack: "client" }),
    "STOMP, queue": await receiveMessages(t, pulse, "/queue/grow.a", { ack: "client" }),
  };
  await pulse.publish({ topic: "grow.a", payload: "before" });
  for (const [name, receive] of Object.entries(receivers)) {
    assert.deepEqual(await receive(1), ["before"], name);
  }
  await grow("grow.a");
  for (const prefix of ["first ", "second "]) {
    const expected = await publish("grow.a", prefix);
    for (const [name, receive] of Object.entries(receivers)) {
      assert.deepEqual((await receive(PARTITIONS)).toSorted(), expected, name);
    }
  }
});

test("groups and sessions whose clients are away receive them later, also after kill -9", async (t) => {
  const { pulse, grow, publish } = await start(t);
  const session = { clientId: "away", clean: false, properties: { sessionExpiryInterval: 3_600 } };
  await pulse.post("/api/v1/topics", { name: "absent" });
  const { client } = await receivePackets(t, pulse, "absent", 1, session);
  await client.drop();
  const member = await EventReader.open(`${pulse.url}/api/v1/subscribe/absent?group=g`);
  member.close();
  const durable = { durable: "true", ack: "client" };
  const stomp = await StompClient.connect(pulse.stompPort);
  await stomp.ask("SUBSCRIBE", { id: "s", destination: "absent", ...durable });
  stomp.close();
  await grow("absent");
  const expected = await publish("absent", "m");
  await pulse.kill();
  await pulse.start();
  const receivers: Record<string, Receive> = {
    "MQTT session": await receivePackets(t, pulse, "absent", 1, session),
    group: await receiveEvents(t, pulse, "absent?group=g"),
    "durable STOMP subscription": await receiveMessages(t, pulse, "absent", durable),
  };
  for (const [name, receive] of Object.entries(receivers)) {
    assert.deepEqual((await receive(PARTITIONS)).toSorted(), expected, name);
  }
});

test("a group with a position in one partition only survives a restart", async (t) => {
  const { pulse } = await start(t);
  await pulse.post("/api/v1/topics", { name: "one", partitions: 1 });
  await pulse.post("/api/v1/topics", { name: "some", partitions: 3 });
  (await EventReader.open(`${pulse.url}/api/v1/subscribe/one?group=g`)).close();
  const committed = { group: "g", topic: "some", partition: 2, offset: 0 };
  assert.equal((await pulse.post("/api/v1/offsets", committed)).status, 200);
  await pulse.stop();
  await pulse.start();
  assert.equal((await pulse.get("/api/v1/stats")).status, 200);
  await pulse.publish({ topic: "some", payload: "x" });
  const receive = await receiveEvents(t, pulse, "some?group=g&from=earliest");
  assert.deepEqual(await receive(1), ["x"]);
});
