// Bounds of the MQTT server: each client gets the reason, memory stays bounded, and nobody else is disturbed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, type TestContext } from "node:test";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess, type PulseProcess } from "../fixture/pulse-process.ts";
import type { RunningPulse } from "../fixture/running-pulse.ts";
import { createConnect, RawClient, type Received } from "./client.ts";

const UNLIMITED = { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" };

async function start(t: TestContext, env: Record<string, string> = {}) {
  return clientsOf(t, await startPulseHere(t, { ...UNLIMITED, ...env }));
}

function clientsOf(t: TestContext, pulse: RunningPulse) {
  const open = async (version: 4 | 5 = 5) => {
    const client = await RawClient.open(pulse.mqttPort, version);
    t.after(() => client.socket.destroy());
    return client;
  };
  const connect = async (packet: Received = {}, version: 4 | 5 = 5) => {
    const client = await open(version);
    await client.connect(packet);
    return client;
  };
  return { open, connect };
}

function readMemoryMiB({ pid }: PulseProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1_024;
}

async function countConnections(pulse: RunningPulse): Promise<number> {
  const { body } = await pulse.get("/metrics");
  return Number(/^platform_pulse_mqtt_connections (\d+)/m.exec(String(body))![1]);
}

test("subscriptions of a session, sessions, retained messages and followed topics are limited", async (t) => {
  const { open, connect } = await start(t, {
    PLATFORM_PULSE_MQTT_SUBSCRIPTIONS_PER_SESSION_MAX: "2",
    PLATFORM_PULSE_MQTT_SESSIONS_MAX: "3",
    PLATFORM_PULSE_MQTT_RETAINED_PER_TENANT_MAX: "1",
    PLATFORM_PULSE_FOLLOWED_TOPICS_MAX: "3",
  });
  const client = await connect();
  assert.deepEqual((await client.subscribe("a")).granted, [0]);
  assert.deepEqual((await client.subscribe("b")).granted, [0]);
  assert.deepEqual((await client.subscribe("c")).granted, [0x97]);
  assert.deepEqual(
    (await client.subscribe("a", { qos: 1 })).granted,
    [1],
    "an existing one is changed",
  );
  const publisher = await connect();
  await publisher.publish("kept", "1", { retain: true });
  assert.equal((await publisher.publish("more", "1", { retain: true })).reasonCode, 0x97);
  await publisher.publish("kept", "2", { retain: true });
  const third = await connect();
  const fourth = await open();
  fourth.send(createConnect(5, { clientId: "fourth" }));
  assert.equal((await fourth.next("connack")).reasonCode, 0x97);
  for (const topic of ["t/1", "t/2", "t/3"]) await publisher.publish(topic, "x");
  assert.deepEqual((await third.subscribe("t/1")).granted, [0]);
  assert.deepEqual((await publisher.subscribe("t/+")).granted, [0x97]);
  await third.disconnect();
  assert.deepEqual((await publisher.subscribe("t/+")).granted, [0], "there is room again");
});

test("a client that never reads is disconnected, and disturbs nobody", async (t) => {
  const pulse = await startPulseProcess(t, {
    ...UNLIMITED,
    PLATFORM_PULSE_STALL_TIMEOUT_MS: "2000",
  });
  const { connect } = clientsOf(t, pulse);
  const topic = "flood";
  for (let index = 0; index < 10; index++) {
    const client = await connect();
    await client.subscribe(topic);
    client.socket.pause();
  }
  const reader = await connect();
  await reader.subscribe(topic, { qos: 1 });
  const publisher = await connect();
  const before = readMemoryMiB(pulse);
  const payload = Buffer.alloc(100_000, "x");
  const deadline = performance.now() + 40_000;
  while ((await countConnections(pulse)) > 2) {
    assert.ok(performance.now() < deadline, "the clients stay connected");
    for (let count = 0; count < 20; count++) {
      await publisher.publish(topic, payload);
      const message = await reader.next("publish");
      reader.send({ cmd: "puback", messageId: message.messageId });
    }
  }
  assert.ok(readMemoryMiB(pulse) - before < 200, "memory is bounded");
});

test("a tenant over its quota is slowed down, then refused with QoS 1", async (t) => {
  const { connect } = await start(t, { PLATFORM_PULSE_MQTT_PUBLISH_BYTES_RATE: "50000" });
  const client = await connect();
  const payload = Buffer.alloc(20_000);
  const since = performance.now();
  for (let index = 0; index < 5; index++) await client.publish("quota", payload);
  assert.ok(performance.now() - since > 500, "reads are paused");
  const big = await client.publish("quota", Buffer.alloc(900_000));
  assert.equal(big.reasonCode, 0x97);
});

test("garbage, half packets and clients without CONNECT do not disturb others", async (t) => {
  const { open, connect } = await start(t);
  const steady = await connect();
  await steady.subscribe("steady", { qos: 1 });
  let seed = 42;
  const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648);
  for (let round = 0; round < 300; round++) {
    const client = round % 3 === 0 ? await open() : await connect();
    const bytes = Array.from({ length: 1 + (random() % 60) }, () => random() % 256);
    if (round % 2 === 0) bytes[0] = [0x30, 0x32, 0x34, 0x82, 0xa2, 0x62, 0xe0, 0xf0][random() % 8]!;
    client.sendBytes(...bytes);
    if (round % 5 === 0) client.socket.destroy();
  }
  const silent = await open();
  const publisher = await connect();
  await publisher.publish("steady", "still here");
  assert.equal(String((await steady.next("publish")).payload), "still here");
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  assert.equal(await silent.closed(), undefined, "a CONNECT must come within ten seconds");
});

test("packet identifiers never run out", async (t) => {
  const { connect } = await start(t);
  const client = await connect({ properties: { receiveMaximum: 65_535 } });
  await client.subscribe("ids", { qos: 1 });
  const publisher = await connect();
  for (let index = 0; index < 1_500; index++) {
    publisher.send({
      cmd: "publish",
      topic: "ids",
      payload: String(index),
      qos: 1,
      messageId: index + 1,
      dup: false,
      retain: false,
    });
    await publisher.next("puback");
  }
  const ids: number[] = [];
  for (let index = 0; index < 1_000; index++) ids.push((await client.next("publish")).messageId);
  await client.expectNothing();
  assert.equal(new Set(ids).size, 1_000);
  for (const messageId of ids) client.send({ cmd: "puback", messageId });
  for (let index = 1_000; index < 1_500; index++) {
    assert.equal(String((await client.next("publish")).payload), String(index));
  }
});
