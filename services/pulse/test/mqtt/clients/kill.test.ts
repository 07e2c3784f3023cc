// The broker is killed while clients publish and receive: what was acknowledged is there, and with QoS 2 only once.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { connectAsync, type MqttClient } from "mqtt";
import { waitFor } from "@platform/testing/wait";
import { startPulseProcess, type PulseProcess } from "../../fixture/pulse-process.ts";

const KILLS = Number(process.env["PLATFORM_MQTT_KILLS"] ?? 2);
const BETWEEN_KILLS_MS = 700;

for (const qos of [1, 2] as const) {
  test(
    `QoS ${qos}: kill -9 loses nothing that was acknowledged`,
    { timeout: 300_000 + KILLS * 60_000 },
    async (t) => {
      const mqttPort = await findFreePort();
      const pulse = await startPulseProcess(t, {
        PLATFORM_PULSE_MQTT_ADDR: `127.0.0.1:${mqttPort}`,
      });
      const received = new Map<string, number>();
      const subscriber = await connectClient(t, pulse, "subscriber");
      subscriber.on("message", (_topic, payload) => {
        const text = payload.toString();
        received.set(text, (received.get(text) ?? 0) + 1);
      });
      await subscriber.subscribeAsync("kill/#", { qos });
      const publisher = await connectClient(t, pulse, "publisher");
      const acknowledged: string[] = [];
      const stopped = new AbortController();
      let next = 0;
      const publish = async () => {
        while (!stopped.signal.aborted) {
          const text = `m${next++}`;
          await publisher.publishAsync(`kill/${next % 5}`, text, { qos });
          acknowledged.push(text);
        }
      };
      const publishing = Promise.all(Array.from({ length: 8 }, publish));
      for (let kill = 0; kill < KILLS; kill++) {
        const before = acknowledged.length;
        await waitFor(() => acknowledged.length > before + 20);
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_KILLS_MS * Math.random()));
        await pulse.kill();
        await pulse.start();
      }
      const before = acknowledged.length;
      await waitFor(() => acknowledged.length > before + 20);
      stopped.abort();
      await publishing;
      await waitFor(() => acknowledged.every((text) => received.has(text)));
      const twice = [...received].filter(([, count]) => count > 1);
      t.diagnostic(
        `QoS ${qos}, ${KILLS} kills: ${acknowledged.length} acknowledged, 0 lost, ${twice.length} repeated`,
      );
      if (qos === 2) assert.deepEqual(twice, []);
    },
  );
}

async function connectClient(t: TestContext, { mqttPort }: PulseProcess, clientId: string) {
  const client: MqttClient = await connectAsync(`mqtt://127.0.0.1:${mqttPort}`, {
    clientId,
    clean: false,
    protocolVersion: 5,
    properties: { sessionExpiryInterval: 3_600 },
    reconnectPeriod: 50,
  });
  client.on("error", () => undefined);
  t.after(() => client.endAsync(true));
  return client;
}
