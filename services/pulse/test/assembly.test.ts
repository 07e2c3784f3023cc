// Each part of the broker starts alone, on the parts below it.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectSecurely } from "node:tls";
import { test, type TestContext } from "node:test";
import { makeCertificate } from "@platform/testing/certificates";
import { openPartsAlone } from "@platform/testing/parts";
import { waitFor } from "@platform/testing/wait";
import { openCallers } from "../src/assembly/callers.ts";
import { openHttp } from "../src/assembly/http.ts";
import { openJournal } from "../src/assembly/journal.ts";
import { openMessages } from "../src/assembly/messages.ts";
import { openWireCertificates, listenForWires } from "../src/assembly/wire-listeners.ts";
import { openWires } from "../src/assembly/wires.ts";
import { pulseDefinition, type PulseConfig } from "../src/config.ts";
import { listSettings } from "./fixture/running-pulse.ts";

const TOKEN = "an-operators-token-of-messaging";

function openParts(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  return openPartsAlone<PulseConfig>(t, pulseDefinition, {
    env: (folder) => listSettings(folder, env),
    operatorToken: TOKEN,
  });
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "pulse-parts-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("the journal is one owner's, and its draining part closes it", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const { journal } = await openJournal(config, service);
  await assert.rejects(openJournal(config, service), /in use|lock/);
  assert.equal(journal.stats().state, "open");
  await lifecycle.close();
  assert.notEqual(journal.stats().state, "open");
});

test("callers: the file of users ends the admission of programs without credentials", async (t) => {
  const open = openParts(t, { PLATFORM_PULSE_ANONYMOUS: "loopback" });
  assert.equal(openCallers(open.config, open.service).anonymous, "loopback");
  const file = join(open.folder, "users.json");
  writeFileSync(file, '[{"name": "shop", "password": "long enough", "tenant": "acme"}]');
  const closed = openParts(t, {
    PLATFORM_PULSE_ANONYMOUS: "loopback",
    PLATFORM_PULSE_USERS_FILE: file,
  });
  const callers = openCallers(closed.config, closed.service);
  assert.equal(callers.anonymous, "never");
  assert.deepEqual(
    callers.users.map(({ name }) => name),
    ["shop"],
  );
});

test("messages: the broker stores without a listener", async (t) => {
  const { config, service } = openParts(t);
  const opened = await openJournal(config, service);
  const { journal } = opened;
  const before = journal.stats().entries;
  const { broker } = await openMessages(config, service, opened);
  await broker.topics.create("main", "orders", {});
  assert.ok(journal.stats().entries > before);
  assert.equal(broker.topics.count, 1);
});

/** The answer of a STOMP server to a client that leaves after its first frame. */
async function greet(socket: Socket): Promise<string> {
  socket.end("CONNECT\naccept-version:1.2\nhost:main\n\n\0");
  let answer = "";
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

test("wires: the servers answer on their own ports, and none is opened without a certificate", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const journal = await openJournal(config, service);
  const messages = await openMessages(config, service, journal);
  const wires = await openWires(config, service, messages, openCallers(config, service));
  await listenForWires(config, service, wires, openWireCertificates(config, service));
  assert.deepEqual(
    lifecycle.listeners.map(({ name }) => name),
    ["kafka", "mqtt", "stomp"],
  );
  const { port } = lifecycle.listeners.find(({ name }) => name === "stomp")!;
  assert.match(await greet(connect(port, "127.0.0.1")), /^(?:CONNECTED|ERROR)\n/);
  for (const name of ["mqtt_tls_addr", "stomp_tls_addr"]) {
    const secured = openParts(t, { [`PLATFORM_PULSE_${name.toUpperCase()}`]: "127.0.0.1:0" });
    assert.throws(
      () => openWireCertificates(secured.config, secured.service),
      new RegExp(`${name} needs tls_cert and tls_key`),
    );
  }
});

test("wires: a certificate of their own may come later, and leaves HTTP and stomp_addr plain", async (t) => {
  const path = join(makeFolder(t), "later.pem");
  const { config, service, lifecycle } = openParts(t, {
    PLATFORM_PULSE_MQTT_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_STOMP_TLS_ADDR: "127.0.0.1:0",
    PLATFORM_PULSE_WIRE_TLS_CERT: path,
    PLATFORM_PULSE_WIRE_TLS_KEY: path,
    PLATFORM_PULSE_WIRE_TLS_AWAITED: "true",
  });
  const messages = await openMessages(config, service, await openJournal(config, service));
  const wires = await openWires(config, service, messages, openCallers(config, service));
  await listenForWires(config, service, wires, openWireCertificates(config, service));
  const findPort = (listener: string): number =>
    lifecycle.listeners.find(({ name }) => name === listener)!.port;
  const readName = (listener: string): Promise<string> =>
    new Promise((resolve) => {
      const place = { port: findPort(listener), host: "127.0.0.1", rejectUnauthorized: false };
      const socket = connectSecurely(place);
      socket.once("error", () => resolve("refused"));
      socket.once("secureConnect", () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
    });
  const listeners = ["mqtt-tls", "stomp-tls"];
  for (const name of listeners) assert.equal(await readName(name), "refused", name);
  const made = makeCertificate(makeFolder(t), "made");
  writeFileSync(path, `${readFileSync(made.cert, "utf8")}${readFileSync(made.key, "utf8")}`);
  for (const name of listeners) await waitFor(async () => (await readName(name)) === "made", name);
  assert.match(await greet(connect(findPort("stomp"), "127.0.0.1")), /^(?:CONNECTED|ERROR)\n/);
  const place = { port: findPort("stomp-tls"), host: "127.0.0.1", rejectUnauthorized: false };
  assert.match(await greet(connectSecurely(place)), /^(?:CONNECTED|ERROR)\n/);
});

test("HTTP: the API answers while no wire protocol listens", async (t) => {
  const { config, service, lifecycle } = openParts(t, { PLATFORM_PULSE_TOKEN: TOKEN });
  const journal = await openJournal(config, service);
  const messages = await openMessages(config, service, journal);
  const callers = openCallers(config, service);
  const wires = await openWires(config, service, messages, callers);
  await openHttp(config, service, messages, callers, wires);
  assert.equal(lifecycle.listeners.length, 1);
  const { port } = lifecycle.listeners[0]!;
  const topics = `http://127.0.0.1:${port}/api/v1/topics`;
  assert.equal((await fetch(topics)).status, 401);
  const headers = { authorization: `Bearer ${TOKEN}` };
  assert.equal((await fetch(topics, { headers })).status, 200);
});
