// Clients that others wrote: python3-stomp, @stomp/stompjs over TCP and WebSocket and in Chromium, stompit.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { Client, type IMessage } from "@stomp/stompjs";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import stompit from "stompit";
import { WebSocket } from "ws";
import { PulseHere } from "../../fixture/pulse-here.ts";

let pulse: PulseHere;
const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));

before(async () => {
  pulse = new PulseHere(folder, { PLATFORM_PULSE_NACK_BACKOFF_MS: "20" });
  await pulse.start();
});

after(async () => {
  await pulse.end();
});

const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const hasPython = isRequired || spawnSync("/usr/bin/python3", ["-c", "import stomp"]).status === 0;
const skipsPython = hasPython ? false : "the Debian package python3-stomp is not installed";

describe("python3-stomp", { skip: skipsPython }, () => {
  for (const version of ["1.0", "1.1", "1.2"]) {
    test(`sends, subscribes and acknowledges with ${version}`, async () => {
      const script = new URL("python-stomp.py", import.meta.url).pathname;
      const args = [script, String(pulse.stompPort), version];
      const { stdout } = await promisify(execFile)("/usr/bin/python3", args, { timeout: 50_000 });
      assert.deepEqual(JSON.parse(stdout), {
        body: "grüße: 1\n",
        a: "b:c",
        type: "text/plain",
        receipt: "sent",
        second: "in a transaction",
      });
    });
  }
});

test("@stomp/stompjs sends with receipts, acknowledges, rejects, and uses transactions", async (t) => {
  const client = new Client({
    brokerURL: `${pulse.url.replace("http", "ws")}/stomp`,
    webSocketFactory: () =>
      new WebSocket(`${pulse.url.replace("http", "ws")}/stomp`, [
        "v12.stomp",
        "v11.stomp",
      ]) as never,
    connectHeaders: { login: "guest", passcode: "guest" },
    heartbeatIncoming: 10_000,
    heartbeatOutgoing: 10_000,
    reconnectDelay: 0,
  });
  const connected = new Promise((resolve) => (client.onConnect = resolve));
  client.activate();
  t.after(() => client.deactivate());
  await connected;
  assert.equal(client.connectedVersion, "1.2");
  const messages: IMessage[] = [];
  let wake = (): void => undefined;
  client.subscribe(
    "/topic/js",
    (message) => {
      messages.push(message);
      wake();
    },
    { ack: "client-individual", id: "s:1" },
  );
  const next = async () => {
    while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return messages.shift()!;
  };
  const binaryBody = new Uint8Array([0, 255, 10]);
  const stored = new Promise((resolve) => client.watchForReceipt("r-1", resolve));
  client.publish({
    destination: "/topic/js",
    binaryBody,
    headers: { receipt: "r-1", a: "b:c\nd" },
  });
  await stored;
  const first = await next();
  assert.deepEqual([...first.binaryBody], [0, 255, 10]);
  assert.equal(first.headers["a"], "b:c\nd");
  first.nack();
  const second = await next();
  assert.equal(second.headers["redelivered"], "true");
  second.ack();
  const transaction = client.begin();
  client.publish({
    destination: "/topic/js",
    body: "grüße",
    headers: { transaction: transaction.id },
  });
  transaction.commit();
  assert.equal((await next()).body, "grüße");
});

test("stompit sends a stream, subscribes and acknowledges", async () => {
  const client = await promisify(stompit.connect)({
    host: "127.0.0.1",
    port: pulse.stompPort,
    connectHeaders: { host: "/", login: "guest", passcode: "guest", "heart-beat": "5000,5000" },
  });
  const received = new Promise<string>((resolve, reject) => {
    client.subscribe(
      { destination: "/queue/stompit", ack: "client-individual" },
      (error, message) => {
        if (error !== null) return reject(error);
        message.readString("utf8", (failure, body) => {
          if (failure !== null) return reject(failure);
          client.ack(message);
          resolve(body ?? "");
        });
      },
    );
  });
  const frame = client.send({ destination: "/queue/stompit", "content-type": "text/plain" });
  frame.write("part one, ");
  frame.end("part two");
  assert.equal(await received, "part one, part two");
  await new Promise<void>((resolve) => client.disconnect(() => resolve()));
});

test(
  "a page in Chromium subscribes and publishes by @stomp/stompjs",
  { skip: chromiumSkip },
  async (t) => {
    const library = new URL(
      "../../../../../node_modules/@stomp/stompjs/bundles/stomp.umd.min.js",
      import.meta.url,
    );
    const pages = createServer((request, response) => {
      const isScript = request.url === "/stomp.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? readFileSync(library) : "<script src=/stomp.js></script>");
    });
    await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
    t.after(() => pages.close());
    const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    const open = new PulseHere(join(folder, "browser"), {
      PLATFORM_PULSE_TOKEN: "operator-token",
    });
    await open.start();
    t.after(() => open.end());
    const browser = await startChromium();
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(origin);
    const body = await page.evaluate(`new Promise((resolve, reject) => {
    const client = new StompJs.Client({
      brokerURL: "${open.url.replace("http", "ws")}/stomp",
      connectHeaders: { login: "page", passcode: "operator-token" },
    });
    client.onStompError = (frame) => reject(new Error(frame.body));
    client.onConnect = () => {
      client.subscribe("/topic/page", (message) => resolve(message.body));
      client.publish({ destination: "/topic/page", body: "grüße" });
    };
    client.activate();
  })`);
    assert.equal(body, "grüße");
  },
);
