// Mosquitto as a bridge with its default settings: both directions, while either side is restarted.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { connectAsync, type MqttClient } from "mqtt";
import { waitFor } from "@platform/testing/wait";
import { startPulseProcess } from "../../fixture/pulse-process.ts";

/** Messages in each direction. */
const MESSAGES = Number(process.env["PLATFORM_MQTT_BRIDGE_MESSAGES"] ?? 200);
const IS_LONG = process.env["PLATFORM_MQTT_BRIDGE_MESSAGES"] !== undefined;
/** Messages on their way: Mosquitto drops those beyond 1 000 (`max_queued_messages`) while its peer is away. */
const WINDOW = 100;
/** The bridge connects again after up to a minute. */
const BRIDGE_MS = 90_000;
const SERVER = "/usr/sbin/mosquitto";
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = existsSync(SERVER) || isRequired ? false : "mosquitto is not installed";

class Mosquitto {
  readonly port: number;
  readonly #file: string;
  #child: ChildProcess | undefined;

  constructor(port: number, file: string) {
    this.port = port;
    this.#file = file;
  }

  async start(): Promise<void> {
    this.#child = spawn(SERVER, ["-c", this.#file], { stdio: "ignore" });
    await waitFor(async () => {
      const socket = connect({ port: this.port, host: "127.0.0.1" });
      const isThere = await once(socket, "connect").then(
        () => true,
        () => false,
      );
      socket.destroy();
      return isThere;
    }, "a listener");
  }

  /** Ends it as an operator would: it saves its queues. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  }
}

async function startMosquitto(t: TestContext, pulsePort: number): Promise<Mosquitto> {
  const folder = mkdtempSync(join(tmpdir(), "mosquitto-bridge-"));
  const port = await findFreePort();
  const file = join(folder, "mosquitto.conf");
  const lines = [
    `listener ${port} 127.0.0.1`,
    "allow_anonymous true",
    "persistence true",
    `persistence_location ${folder}/`,
    "log_type none",
    ...(process.getuid?.() === 0 ? ["user root"] : []),
    "connection platform",
    `address 127.0.0.1:${pulsePort}`,
    "topic bridged/# both 1",
    // By default it waits between 5 and 30 s before it connects again.
    ...(IS_LONG ? [] : ["restart_timeout 1"]),
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  const mosquitto = new Mosquitto(port, file);
  t.after(async () => {
    await mosquitto.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await mosquitto.start();
  return mosquitto;
}

/** A client of one broker whose session is kept, and what it has received: the count by text. */
async function follow(t: TestContext, port: number, clientId: string) {
  const client: MqttClient = await connectAsync(`mqtt://127.0.0.1:${port}`, {
    clientId,
    clean: false,
    reconnectPeriod: 100,
  });
  client.on("error", () => undefined);
  t.after(() => void client.end(true));
  const received = new Map<string, number>();
  client.on("message", (topic, payload) => {
    const text = `${topic} ${payload.toString()}`;
    received.set(text, (received.get(text) ?? 0) + 1);
  });
  await client.subscribeAsync("bridged/#", { qos: 1 });
  return { client, received };
}

type Side = Awaited<ReturnType<typeof follow>>;

/** Publishes at one side until the other one has received all, with `WINDOW` messages on their way. */
async function sendAcross(from: Side, to: Side, name: string, count: number, onMessage = () => {}) {
  const topic = `bridged/${name}`;
  const isThere = (index: number) => to.received.has(`${topic} ${index}`);
  let oldest = 0;
  const published: Promise<unknown>[] = [];
  for (let index = 0; index < count; index++) {
    await waitFor(
      () => {
        while (oldest < index && isThere(oldest)) oldest++;
        return index - oldest < WINDOW;
      },
      "room in the window",
      BRIDGE_MS,
    );
    published.push(publish(from.client, topic, String(index)));
    onMessage();
  }
  await Promise.all(published);
  await waitFor(
    () => {
      while (oldest < count && isThere(oldest)) oldest++;
      return oldest === count;
    },
    "all messages",
    BRIDGE_MS,
  );
}

/** Publishes; again if the client gives up because the connection breaks while it resends earlier messages. */
async function publish(client: MqttClient, topic: string, text: string): Promise<void> {
  await client
    .publishAsync(topic, text, { qos: 1 })
    .catch(() => sleep(100).then(() => publish(client, topic, text)));
}

function countOf({ received }: Side, name: string): number[] {
  return [...received].filter(([text]) => text.startsWith(`bridged/${name} `)).map(([, n]) => n);
}

test(
  "a Mosquitto bridge forwards both ways, over restarts of either side, and nothing goes round",
  { skip, timeout: 300_000 + MESSAGES * 60 },
  async (t) => {
    const pulsePort = await findFreePort();
    const pulse = await startPulseProcess(t, {
      PLATFORM_PULSE_MQTT_ADDR: `127.0.0.1:${pulsePort}`,
    });
    const mosquitto = await startMosquitto(t, pulsePort);
    const ours = await follow(t, pulsePort, "ours");
    const theirs = await follow(t, mosquitto.port, "theirs");
    await waitForBridge(ours, theirs);

    const quiet = 100;
    await Promise.all([
      sendAcross(ours, theirs, "quiet-out", quiet),
      sendAcross(theirs, ours, "quiet-in", quiet),
    ]);
    // One more of each, so that what went round would have come back.
    await Promise.all([
      sendAcross(ours, theirs, "end-out", 1),
      sendAcross(theirs, ours, "end-in", 1),
    ]);
    for (const side of [ours, theirs]) {
      for (const name of ["quiet-out", "quiet-in"]) {
        assert.deepEqual(
          countOf(side, name),
          Array.from({ length: quiet }, () => 1),
        );
      }
    }

    const since = performance.now();
    let sent = 0;
    const restarts = [
      () => mosquitto.stop().then(() => mosquitto.start()),
      () => pulse.kill().then(() => pulse.start()),
      ...(IS_LONG ? [() => pulse.stop().then(() => pulse.start())] : []),
    ];
    const restartCount = restarts.length;
    let restarting: Promise<void> = Promise.resolve();
    const noteSent = () => {
      if (++sent % Math.ceil(MESSAGES / 2) !== 0) return;
      const restart = restarts.shift();
      if (restart !== undefined) restarting = restarting.then(restart);
    };
    await Promise.all([
      sendAcross(ours, theirs, "out", MESSAGES, noteSent),
      sendAcross(theirs, ours, "in", MESSAGES, noteSent),
    ]);
    await restarting;
    assert.equal(restarts.length, 0);
    const repeated = (side: Side, name: string) => countOf(side, name).filter((n) => n > 1).length;
    t.diagnostic(
      `${MESSAGES} messages each way and ${restartCount} restarts in ` +
        `${Math.round(performance.now() - since)} ms: all arrived, ` +
        `${repeated(theirs, "out")} and ${repeated(ours, "in")} repeated`,
    );
    assert.deepEqual(pulse.errors, []);
  },
);

/** The bridge has connected and subscribed when a message of each side has come to the other. */
async function waitForBridge(ours: Side, theirs: Side): Promise<void> {
  await waitFor(
    async () => {
      await ours.client.publishAsync("bridged/probe", "ours", { qos: 1 });
      await theirs.client.publishAsync("bridged/probe", "theirs", { qos: 1 });
      await sleep(100);
      return ours.received.has("bridged/probe theirs") && theirs.received.has("bridged/probe ours");
    },
    "probes over the bridge",
    BRIDGE_MS,
  );
}
