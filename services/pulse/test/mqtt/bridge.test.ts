// Bridges of other brokers: how they introduce themselves, topics of the server, and nothing that comes back.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { PulseHere } from "../fixture/pulse-here.ts";
import { createConnect, mqttPacket, RawClient, type Received } from "./client.ts";

const VERSIONS = [4, 5] as const;
/** CONNACK of MQTT 3.1.1: unacceptable protocol version. */
const UNACCEPTABLE = "20020001";

const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));
const pulse = new PulseHere(folder, {});

before(() => pulse.start());
after(async () => {
  await pulse.end();
});

async function open(t: TestContext, version: 4 | 5): Promise<RawClient> {
  const client = await RawClient.open(pulse.mqttPort, version);
  t.after(() => client.socket.destroy());
  return client;
}

async function connect(t: TestContext, version: 4 | 5, packet: Received = {}): Promise<RawClient> {
  const client = await open(t, version);
  await client.connect(packet);
  return client;
}

/** Connects with bit 7 of the protocol level, as Mosquitto does by default (`try_private`). */
async function connectBridge(client: RawClient, version: 4 | 5, packet: Received): Promise<void> {
  const bytes = mqttPacket.generate(createConnect(version, packet), { protocolVersion: version });
  bytes[8] = version | 0x80;
  client.socket.write(bytes);
  const connack = await client.next("connack");
  assert.equal(connack.reasonCode ?? connack.returnCode, 0);
}

/** The answer, in hex, to a CONNECT of a level, up to the end of the connection. */
async function askLevel(name: string, level: number): Promise<string> {
  const { socket } = await RawClient.open(pulse.mqttPort, 4);
  const text = Buffer.from(name);
  const tail = [level, 2, 0, 0, 0, 2, 0x61, 0x62];
  socket.write(
    Buffer.from([0x10, 2 + text.length + tail.length, 0, text.length, ...text, ...tail]),
  );
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("hex");
}

// MQTT 3.1.1, MQTT-3.1.2-2: "The Server MUST respond to the CONNECT Packet with a CONNACK return code 0x01 (unacceptable
// protocol level) and then disconnect the Client if the Protocol Level is not supported by the Server."
test("an unknown protocol level is refused in the two bytes that every client understands", async () => {
  for (const level of [0, 2, 3, 6, 0x7f, 0x80, 0x83, 0x86, 0xff]) {
    assert.equal(await askLevel("MQTT", level), UNACCEPTABLE, `level ${level}`);
  }
  for (const level of [3, 0x83, 5]) {
    assert.equal(await askLevel("MQIsdp", level), UNACCEPTABLE, `MQIsdp ${level}`);
  }
});

for (const version of VERSIONS) {
  test(`a bridge gets nothing back that came from it, also from an earlier session (MQTT ${version})`, async (t) => {
    const name = `bridge${version}`;
    const filter = `${name}/#`;
    const plain = await connect(t, version);
    const first = await open(t, version);
    await connectBridge(first, version, { clientId: name });
    await first.subscribe(filter, { qos: 1 });
    await first.publish(`${name}/kept`, "of the bridge", { retain: true });
    await first.publish(`${name}/live`, "of the bridge");
    await plain.publish(`${name}/other`, "of another", { retain: true });
    const { topic, retain, messageId } = await first.next("publish");
    // A bridge forwards RETAIN as it was published.
    assert.deepEqual([topic, retain], [`${name}/other`, true]);
    first.send({ cmd: "puback", messageId, reasonCode: 0 });
    await first.expectNothing();
    await first.disconnect();
    await plain.subscribe(filter);
    const kept = [(await plain.next("publish")).topic, (await plain.next("publish")).topic];
    assert.deepEqual(kept, [`${name}/kept`, `${name}/other`], "other clients get all");
    const second = await open(t, version);
    await connectBridge(second, version, { clientId: name });
    await second.subscribe(filter);
    assert.equal((await second.next("publish")).topic, `${name}/other`);
    await second.expectNothing();
  });

  test(`topics that begin with $ never close a connection (MQTT ${version})`, async (t) => {
    const will = { topic: "$SYS/broker/connection/b/state", payload: "0", qos: 1, retain: true };
    const client = await connect(t, version, { will });
    const watcher = await connect(t, version);
    const last = `last${version}`;
    for (const filter of [last, "$SYS/#", "$other/#"]) await watcher.subscribe(filter);
    for (const qos of [0, 1, 2]) {
      const more = { qos, retain: true };
      const accepted = await client.publish("$SYS/broker/connection/b/state", "1", more);
      if (qos > 0 && version === 5) assert.equal(accepted.reasonCode, 0);
      for (const topic of ["$other/x", "$SYS", "$share/g/x"]) {
        if (qos === 2 && version === 5) {
          // PUBREC with a reason of failure ends the exchange (section 4.3.3).
          const packet = { topic, payload: "1", messageId: 9, dup: false, ...more };
          client.send({ cmd: "publish", ...packet });
          assert.equal((await client.next("pubrec")).reasonCode, 0x90, topic);
          continue;
        }
        const refused = await client.publish(topic, "1", more);
        if (qos > 0 && version === 5) assert.equal(refused.reasonCode, 0x90, topic);
      }
    }
    await client.expectNothing();
    await client.drop();
    const publisher = await connect(t, version);
    await publisher.publish(last, "1");
    assert.equal((await watcher.next("publish")).topic, last, "the others were dropped");
  });
}

test("a will to another topic of the server is refused, and dropped in MQTT 3.1.1", async (t) => {
  const will = { topic: "$other/x", payload: "0", qos: 0, retain: false };
  await connect(t, 4, { will });
  const client = await open(t, 5);
  client.send(createConnect(5, { will }));
  // Section 3.2.2.2: "The Will Topic Name is not malformed, but is not accepted by this Server."
  assert.equal((await client.next("connack")).reasonCode, 0x90);
});

test("an alias of a refused topic is refused by its alias, too", async (t) => {
  const client = await connect(t, 5);
  const withAlias = { properties: { topicAlias: 3 } };
  for (const topic of ["$SYS/x", ""]) {
    assert.equal((await client.publish(topic, "1", withAlias)).reasonCode, 0);
  }
  for (const topic of ["$other/x", ""]) {
    assert.equal((await client.publish(topic, "1", withAlias)).reasonCode, 0x90);
  }
  const long = "l".repeat(300);
  assert.equal((await client.publish(long, "1")).reasonCode, 0x90, "a name that is too long");
  await client.expectNothing();
});

test("UNSUBSCRIBE with an invalid filter has the code 0x8F", async (t) => {
  const client = await connect(t, 5);
  const unsubscriptions = ["a/#/b", "a+", "$share//x", "unknown", "$share/g/unknown"];
  client.send({ cmd: "unsubscribe", messageId: 5, unsubscriptions });
  const { granted } = await client.next("unsuback");
  assert.deepEqual(granted, [0x8f, 0x8f, 0x8f, 0x11, 0x11]);
});
