// Floods of connections, and many subscriptions and sessions: memory is bounded, excess is refused, others are not disturbed.
// PLATFORM_MQTT_SCALE=100000 runs the long form.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect as connectPlain, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { findFreePort } from "@platform/kernel/testing";
import { makeCertificate } from "@platform/testing/certificates";
import { waitFor } from "@platform/testing/wait";
import { startPulseProcess, type PulseProcess } from "../fixture/pulse-process.ts";
import { mqttPacket, RawClient } from "./client.ts";

/** Subscriptions, and stored sessions. */
const SCALE = Number(process.env["PLATFORM_MQTT_SCALE"] ?? 2_000);
const FLOOD = 400;
const CONNECTIONS_MAX = 100;
const BURST = 100;
/** Sessions that are stored: each needs a connection of its own. */
const SESSIONS = SCALE / 4;
const LONG_MS = 200_000 + SCALE * 60;

async function start(t: TestContext, env: Record<string, string> = {}) {
  const pulse = await startPulseProcess(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0", ...env });
  const connect = async (packet: object = {}) => {
    const client = await RawClient.open(pulse.mqttPort, 5);
    t.after(() => client.socket.destroy());
    await client.connect(packet);
    return client;
  };
  return { pulse, connect };
}

function readMemoryMiB({ pid }: PulseProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1_024;
}

async function readMetric(pulse: PulseProcess, name: string): Promise<number> {
  const { body } = await pulse.get("/metrics");
  return findMetric(String(body), name);
}

function findMetric(text: string, name: string): number {
  return Number(new RegExp(`^platform_pulse_mqtt_${name} (\\d+)`, "m").exec(text)![1]);
}

/** Opens sockets in bursts; each sends `bytes`. */
async function flood(port: number, bytes: Buffer): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let opened = 0; opened < FLOOD; opened += BURST) {
    const burst = Array.from({ length: BURST }, () => connectPlain({ port, host: "127.0.0.1" }));
    await Promise.all(
      burst.map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.on("error", () => resolve());
            socket.on("connect", () => {
              socket.write(bytes);
              resolve();
            });
          }),
      ),
    );
    sockets.push(...burst);
  }
  return sockets;
}

const CONNECT = mqttPacket.generate(
  {
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 5,
    clean: true,
    clientId: "",
    keepalive: 0,
    username: "nobody",
    password: Buffer.from("wrong"),
  },
  { protocolVersion: 5 },
);

for (const [name, bytes] of [
  ["CONNECT packets with wrong passwords", CONNECT],
  ["half CONNECT packets", CONNECT.subarray(0, 9)],
] as const) {
  test(`a flood of ${name} is bounded, and connected clients go on`, async (t) => {
    const { pulse, connect } = await start(t, {
      PLATFORM_PULSE_MQTT_CONNECTIONS_MAX: String(CONNECTIONS_MAX),
      PLATFORM_PULSE_MQTT_CONNECTIONS_PER_ADDRESS_MAX: String(CONNECTIONS_MAX),
    });
    const steady = await connect();
    await steady.subscribe("steady", { qos: 1 });
    const before = readMemoryMiB(pulse);
    const sockets = await flood(pulse.mqttPort, bytes);
    assert.ok((await readMetric(pulse, "connections")) <= CONNECTIONS_MAX);
    // The system completes connections that a busy broker has not accepted yet.
    await waitFor(
      async () => (await readMetric(pulse, "refused_connections_total")) > 0,
      "no connection of the flood was refused",
    );
    steady.send({ cmd: "publish", topic: "steady", payload: "x", qos: 1, messageId: 1 });
    const packets = [await steady.next(), await steady.next()].map(({ cmd }) => cmd as string);
    assert.deepEqual(packets.sort(), ["puback", "publish"]);
    assert.ok(readMemoryMiB(pulse) - before < 100, "memory is bounded");
    for (const socket of sockets) socket.destroy();
    await waitFor(
      async () => (await readMetric(pulse, "connections")) === 1,
      "connections of the flood are left",
    );
    await (await connect()).disconnect();
  });
}

test("a flood of TLS handshakes that are never finished is bounded", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "pulse-mqtt-flood-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { key, cert } = makeCertificate(folder, "localhost");
  const tlsPort = await findFreePort();
  const { pulse, connect } = await start(t, {
    PLATFORM_PULSE_MQTT_TLS_ADDR: `127.0.0.1:${tlsPort}`,
    PLATFORM_PULSE_TLS_CERT_FILE: cert,
    PLATFORM_PULSE_TLS_KEY_FILE: key,
    PLATFORM_PULSE_MQTT_CONNECTIONS_MAX: String(CONNECTIONS_MAX),
    PLATFORM_PULSE_MQTT_CONNECTIONS_PER_ADDRESS_MAX: String(CONNECTIONS_MAX),
  });
  const readRefused = async (): Promise<number> => {
    const url = `https://127.0.0.1:${pulse.port}/metrics`;
    const { stdout } = await promisify(execFile)("curl", ["--silent", "--insecure", url]);
    return findMetric(stdout, "refused_connections_total");
  };
  const steady = await connect();
  const before = readMemoryMiB(pulse);
  // The head of a TLS record that announces 512 bytes.
  const sockets = await flood(tlsPort, Buffer.from([0x16, 3, 1, 2, 0, 1]));
  await waitFor(
    async () => (await readRefused()) >= FLOOD - CONNECTIONS_MAX,
    "handshakes are not counted",
  );
  await steady.publish("steady", "x");
  assert.ok(readMemoryMiB(pulse) - before < 100, "memory is bounded");
  for (const socket of sockets) socket.destroy();
  // A new client is refused until the broker has seen the sockets close.
  await waitFor(async () => {
    const client = await RawClient.open(pulse.mqttPort, 5);
    const isAccepted = await client.connect().then(
      () => true,
      () => false,
    );
    client.socket.destroy();
    return isAccepted;
  }, "handshakes of the flood are still counted");
});

test(
  `${SCALE} subscriptions: bounded memory each, and publishing stays fast`,
  { timeout: LONG_MS },
  async (t) => {
    const each = 2_000;
    const { pulse, connect } = await start(t, {
      PLATFORM_PULSE_MQTT_SUBSCRIPTIONS_PER_SESSION_MAX: String(each),
    });
    const publisher = await connect();
    await publisher.publish("sensors/0/0", "warm");
    const before = readMemoryMiB(pulse);
    const clients: RawClient[] = [];
    for (let group = 0; group < SCALE / each; group++) {
      const client = await connect();
      clients.push(client);
      for (let at = 0; at < each; at += 500) {
        const subscriptions = Array.from({ length: 500 }, (_, index) => ({
          topic: index % 2 === 0 ? `sensors/${group}/${at + index}` : `+/${group}/${at + index}/#`,
          qos: 1,
        }));
        client.send({ cmd: "subscribe", messageId: 1, subscriptions });
        const { granted } = await client.next("suback");
        assert.ok(granted.every((code: number) => code === 1));
      }
      assert.deepEqual((await client.subscribe("one/more")).granted, [0x97]);
    }
    assert.equal(await readMetric(pulse, "subscriptions"), SCALE);
    const kibEach = ((readMemoryMiB(pulse) - before) * 1_024) / SCALE;
    t.diagnostic(`${kibEach.toFixed(2)} KiB each`);
    assert.ok(kibEach < 8 + 60_000 / SCALE, `${kibEach} KiB each`);
    for (const [group, client] of clients.entries()) {
      await publisher.publish(`sensors/${group}/0`, "x");
      assert.equal((await client.next("publish")).topic, `sensors/${group}/0`);
    }
    const [first] = clients;
    first!.send({ cmd: "unsubscribe", messageId: 2, unsubscriptions: ["sensors/0/2"] });
    await first!.next();
  },
);

test(
  `${SESSIONS} stored sessions: they survive a restart, and the next one is refused`,
  { timeout: LONG_MS },
  async (t) => {
    const { pulse, connect } = await start(t, {
      PLATFORM_PULSE_MQTT_SESSIONS_MAX: String(SESSIONS),
      PLATFORM_PULSE_MQTT_SESSIONS_PER_TENANT_MAX: String(SESSIONS),
    });
    const before = readMemoryMiB(pulse);
    const session = { clean: false, properties: { sessionExpiryInterval: 3_600 } };
    for (let at = 0; at < SESSIONS; at += BURST) {
      await Promise.all(
        Array.from({ length: BURST }, async (_, index) => {
          const client = await connect({ ...session, clientId: `device-${at + index}` });
          await client.subscribe(`devices/${at + index}/commands`, { qos: 1 });
          await client.disconnect();
        }),
      );
    }
    const kibEach = ((readMemoryMiB(pulse) - before) * 1_024) / SESSIONS;
    t.diagnostic(`${kibEach.toFixed(2)} KiB each`);
    assert.ok(kibEach < 8 + 60_000 / SESSIONS, `${kibEach} KiB each`);
    await pulse.kill();
    const since = performance.now();
    await pulse.start();
    t.diagnostic(`restart in ${Math.round(performance.now() - since)} ms`);
    assert.equal(await readMetric(pulse, "sessions"), SESSIONS);
    const extra = await RawClient.open(pulse.mqttPort, 5);
    t.after(() => extra.socket.destroy());
    extra.send({
      cmd: "connect",
      protocolId: "MQTT",
      protocolVersion: 5,
      clientId: "extra",
      clean: true,
    });
    assert.equal((await extra.next("connack")).reasonCode, 0x97);
    await pulse.publish({ topic: "devices.7.commands", payload: "go" });
    const device = await connect({ ...session, clientId: "device-7" });
    assert.equal(String((await device.next("publish")).payload), "go");
  },
);
