// Real clients: mosquitto's programs, paho-mqtt, mqtt (npm) over TCP, TLS and WebSocket, and a page in Chromium.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chromiumSkip, findFreePort, startChromium } from "@platform/kernel/testing";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connectAsync, type IPublishPacket } from "mqtt";
import { makeCertificate } from "@platform/testing/certificates";
import { startPulseHere } from "../../fixture/pulse-here.ts";

const run = promisify(execFile);
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const TIMEOUT = { timeout: 60_000 };
const python = "/usr/bin/python3";
const paho = fileURLToPath(new URL("paho-client.py", import.meta.url));

function skipWithout(isThere: boolean, name: string): string | false {
  return isThere || isRequired ? false : `${name} is not installed`;
}

const hasMosquitto = existsSync("/usr/bin/mosquitto_pub");
const hasPaho = spawnSync(python, [paho, "version"]).status === 0;

for (const version of ["mqttv311", "mqttv5"]) {
  test(
    `mosquitto_pub and mosquitto_sub, ${version}`,
    { skip: skipWithout(hasMosquitto, "mosquitto-clients") },
    async (t) => {
      const pulse = await startPulseHere(t);
      const common = ["-p", String(pulse.mqttPort), "-V", version];
      for (const qos of ["0", "1", "2"]) {
        const topic = `mosquitto/${qos}`;
        await run(
          "mosquitto_pub",
          [...common, "-t", `${topic}/kept`, "-m", "kept", "-r", "-q", "1"],
          TIMEOUT,
        );
        const subscriber = run(
          "mosquitto_sub",
          [...common, "-t", `${topic}/+`, "-q", qos, "-C", "3", "-F", "%t %p %q %r"],
          TIMEOUT,
        );
        // It has subscribed when it has the retained message.
        await once(subscriber.child.stdout!, "data");
        for (const text of ["one", "two"]) {
          await run(
            "mosquitto_pub",
            [...common, "-t", `${topic}/${text}`, "-m", text, "-q", qos],
            TIMEOUT,
          );
        }
        const { stdout } = await subscriber;
        const kept = `${topic}/kept kept ${Math.min(1, Number(qos))} 1`;
        assert.deepEqual(stdout.trim().split("\n"), [
          kept,
          `${topic}/one one ${qos} 0`,
          `${topic}/two two ${qos} 0`,
        ]);
      }
    },
  );
}

test("paho-mqtt", { skip: skipWithout(hasPaho, "python3-paho-mqtt") }, async (t) => {
  const pulse = await startPulseHere(t);
  for (const protocol of ["311", "5"]) {
    for (const qos of [0, 1, 2]) {
      const args = [paho, String(pulse.mqttPort), protocol, String(qos), "50"];
      const { stdout } = await run(python, args, TIMEOUT);
      const expected = Array.from({ length: 50 }, (_, index) => [
        `paho/${protocol}/${qos}/${index}`,
        `message ${index}`,
        qos,
      ]);
      assert.deepEqual((JSON.parse(stdout) as unknown[][]).sort(byTopic), expected.sort(byTopic));
    }
  }
});

test("mqtt (npm) over TCP, TLS and WebSocket, with request and response", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "pulse-mqtt-tls-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const names = "DNS:localhost,IP:127.0.0.1";
  const { key, cert } = makeCertificate(folder, "localhost", { names });
  const tlsPort = await findFreePort();
  const secure = await startPulseHere(t, {
    PLATFORM_PULSE_MQTT_TLS_ADDR: `127.0.0.1:${tlsPort}`,
    PLATFORM_PULSE_TLS_CERT_FILE: cert,
    PLATFORM_PULSE_TLS_KEY_FILE: key,
  });
  const ca = await readFile(cert);
  const urls = [
    `mqtt://127.0.0.1:${secure.mqttPort}`,
    `mqtts://127.0.0.1:${tlsPort}`,
    `wss://127.0.0.1:${secure.port}/mqtt`,
  ];
  const payload = Buffer.alloc(300_000, "\0ä");
  for (const url of urls) {
    for (const protocolVersion of [4, 5] as const) {
      const options = { protocolVersion, ca, wsOptions: { ca } };
      const responder = await connectAsync(url, options);
      const requester = await connectAsync(url, options);
      t.after(() => Promise.all([responder.endAsync(true), requester.endAsync(true)]));
      await responder.subscribeAsync("service/echo", { qos: 2 });
      responder.on("message", (_topic, request, packet) => {
        const topic = packet.properties?.responseTopic ?? "answers/old";
        const { correlationData } = packet.properties ?? {};
        const properties = correlationData === undefined ? {} : { properties: { correlationData } };
        responder.publish(topic, request, { qos: 1, ...properties });
      });
      const answers = protocolVersion === 5 ? "answers/mine" : "answers/old";
      await requester.subscribeAsync(answers, { qos: 1 });
      const answered = new Promise<[Buffer, IPublishPacket]>((resolve) => {
        requester.once("message", (_topic, answer, packet) => resolve([answer, packet]));
      });
      const properties = { responseTopic: answers, correlationData: Buffer.from("42") };
      await requester.publishAsync("service/echo", payload, {
        qos: 2,
        ...(protocolVersion === 5 ? { properties } : {}),
      });
      const [answer, packet] = await answered;
      assert.ok(payload.equals(answer), url);
      if (protocolVersion === 5) assert.equal(String(packet.properties?.correlationData), "42");
      await Promise.all([responder.endAsync(), requester.endAsync()]);
    }
  }
});

test("a page in Chromium", { skip: chromiumSkip }, async (t) => {
  const library = createRequire(import.meta.url).resolve("mqtt/dist/mqtt.min");
  const server = createServer((request, response) => {
    const isScript = request.url === "/mqtt.js";
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    if (!isScript) response.end("<!doctype html><title>page</title><script src=/mqtt.js></script>");
    else void readFile(library).then((script) => response.end(script));
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_TOKEN: "operator-token" });
  const browser = await startChromium();
  t.after(() => browser.close());
  const tab = await browser.newPage();
  await tab.goto(page);
  const texts = await tab.evaluate(
    `(async () => {
      const client = await mqtt.connectAsync("ws://127.0.0.1:${pulse.port}/mqtt", {
        protocolVersion: 5, username: "page", password: "operator-token",
      });
      const texts = [];
      const done = new Promise((resolve) => client.on("message", (topic, payload) => {
        if (texts.push(topic + " " + payload) === 3) resolve();
      }));
      await client.subscribeAsync("page/+", { qos: 2 });
      for (const qos of [0, 1, 2]) await client.publishAsync("page/" + qos, "hällo " + qos, { qos });
      await done;
      await client.endAsync();
      return texts.sort();
    })()`,
  );
  assert.deepEqual(texts, ["page/0 hällo 0", "page/1 hällo 1", "page/2 hällo 2"]);
});

function byTopic(one: readonly unknown[], other: readonly unknown[]): number {
  return String(one[0]) < String(other[0]) ? -1 : 1;
}
