// Packets that the standards forbid.
import assert from "node:assert/strict";
import { createConnect, mqttPacket } from "../../../services/pulse/test/mqtt/client.ts";
import { both, five, four, type Case, type Scene } from "./case.ts";

/** Sends bytes after a CONNECT; the connection must end, in MQTT 5 with this reason. */
async function refuse(scene: Scene, reason: number, ...bytes: number[]): Promise<void> {
  const client = await scene.connect();
  client.sendBytes(...bytes);
  const last = await client.closed();
  if (scene.version === 5) assert.equal(last?.reasonCode, reason);
  else assert.equal(last, undefined);
}

/** Sends a changed CONNECT; in MQTT 5 it is refused with this reason, in MQTT 3.1.1 with a closed connection. */
async function refuseConnect(
  scene: Scene,
  reason: number,
  change: (bytes: Buffer) => Buffer,
): Promise<void> {
  const { version } = scene;
  const client = await scene.open();
  const packet = createConnect(version, { clientId: scene.createName() });
  client.socket.write(change(mqttPacket.generate(packet, { protocolVersion: version })));
  const last = await client.closed();
  if (version === 5) assert.equal(last?.reasonCode, reason);
  else assert.equal(last, undefined);
}

const FLAGS_AT = 9;

function withFlags(bytes: Buffer, flags: number): Buffer {
  bytes[FLAGS_AT] = flags;
  return bytes;
}

/** SUBSCRIBE to `a` with these options; MQTT 5 has a length of properties. */
function subscribeBytes(version: 4 | 5, firstByte: number, id: number, options: number): number[] {
  const body = [0, id, ...(version === 5 ? [0] : []), 0, 1, 0x61, options];
  return [firstByte, body.length, ...body];
}

export const malformedCases: Case[] = [
  both(
    "a first packet that is no CONNECT closes the connection",
    "3.1.0-1",
    "3.1.0-1",
    async (scene) => {
      const client = await scene.open();
      client.sendBytes(0xc0, 0);
      assert.equal(await client.closed(), undefined);
    },
  ),
  both("a second CONNECT closes the connection", "3.1.0-2", "3.1.0-2 4.13.1-1", async (scene) => {
    const client = await scene.connect();
    client.send(createConnect(scene.version, { clientId: "again" }));
    const last = await client.closed();
    if (scene.version === 5) assert.equal(last.reasonCode, 0x82);
  }),
  both("the protocol name is MQTT", "3.1.2-1", "3.1.2-1", async (scene) => {
    const client = await scene.open();
    client.sendBytes(
      0x10,
      14,
      0,
      4,
      0x4d,
      0x51,
      0x54,
      0x58,
      scene.version,
      2,
      0,
      0,
      0,
      2,
      0x61,
      0x62,
    );
    await client.closed();
  }),
  both("an unknown version is refused by its code", "3.1.2-2", "3.1.2-2 3.2.2-7", async (scene) => {
    const client = await scene.open();
    const answer: Buffer[] = [];
    client.socket.on("data", (bytes: Buffer) => answer.push(bytes));
    const level = scene.version === 5 ? 6 : 3;
    client.sendBytes(0x10, 14, 0, 4, 0x4d, 0x51, 0x54, 0x54, level, 2, 0, 0, 0, 2, 0x61, 0x62);
    await client.closed();
    assert.equal(Buffer.concat(answer).toString("hex"), "20020001", "in the form of MQTT 3.1.1");
  }),
  both(
    "the reserved flag of a CONNECT is refused",
    "3.1.2-3 3.1.4-1",
    "3.1.2-3 3.1.4-1 3.1.4-6",
    (scene) => refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x03)),
  ),
  both(
    "flags of a will without a will are refused",
    "3.1.2-11 3.1.2-13 3.1.2-15",
    "3.1.2-11 3.1.2-13",
    async (scene) => {
      await refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x0a));
      await refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x22));
    },
  ),
  both("a will with QoS 3 is refused", "3.1.2-14", "3.1.2-12", (scene) =>
    refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x1e)),
  ),
  both(
    "flags without their fields are refused",
    "3.1.2-9 3.1.2-19 3.1.2-21",
    "3.1.2-9 3.1.2-17 3.1.2-19",
    async (scene) => {
      await refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x06));
      await refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x82));
    },
  ),
  both(
    "fields without their flags are refused",
    "3.1.2-18 3.1.2-20",
    "3.1.2-16 3.1.2-18",
    (scene) =>
      refuseConnect(scene, 0x81, (bytes) => {
        const longer = Buffer.concat([bytes, Buffer.from([0, 1, 0x61])]);
        longer[1] = longer[1]! + 3;
        return longer;
      }),
  ),
  four("a password needs a user name", "3.1.2-22", (scene) =>
    refuseConnect(scene, 0x81, (bytes) => withFlags(bytes, 0x42)),
  ),
  both("texts that are not UTF-8 are refused", "1.5.3-1 3.1.3-4", "1.5.4-1 3.1.3-4", (scene) =>
    refuseConnect(scene, 0x81, (bytes) => {
      bytes[bytes.length - 1] = 0xff;
      return bytes;
    }),
  ),
  both("texts with U+0000 are refused", "1.5.3-2 4.7.3-2", "1.5.4-2 4.7.3-2", (scene) =>
    refuse(
      scene,
      0x81,
      0x30,
      scene.version === 5 ? 4 : 3,
      0,
      1,
      0,
      ...(scene.version === 5 ? [0] : []),
    ),
  ),
  both("a length in more than four bytes is refused", "", "1.5.5-1", (scene) =>
    refuse(scene, 0x81, 0x30, 0xff, 0xff, 0xff, 0xff, 0x01),
  ),
  both("a length that is not the shortest is refused", "", "1.5.5-1", (scene) =>
    refuse(scene, 0x81, 0xc0, 0x80, 0x00),
  ),
  both(
    "wrong flags of each packet are refused",
    "2.2.2-1 2.2.2-2 3.6.1-1 3.8.1-1 3.10.1-1 3.14.1-1",
    "2.1.3-1 3.6.1-1 3.8.1-1 3.10.1-1 3.14.1-1",
    async (scene) => {
      const { version } = scene;
      await refuse(scene, 0x81, 0xc1, 0);
      await refuse(scene, 0x81, 0x60, 2, 0, 1);
      await refuse(scene, 0x81, ...subscribeBytes(version, 0x80, 1, 0));
      const body = [0, 1, ...(version === 5 ? [0] : []), 0, 1, 0x61];
      await refuse(scene, 0x81, 0xa0, body.length, ...body);
      await refuse(scene, 0x81, 0xe1, 0);
    },
  ),
  both("a PUBLISH with QoS 3 is refused", "3.3.1-4", "3.3.1-4", (scene) =>
    refuse(scene, 0x81, 0x36, 6, 0, 1, 0x61, 0, 1, 0),
  ),
  both("DUP with QoS 0 is refused", "3.3.1-2", "3.3.1-2", (scene) =>
    refuse(scene, 0x81, 0x38, 4, 0, 1, 0x61, 0),
  ),
  both("packet identifier 0 is refused", "2.3.1-1", "2.2.1-3", async (scene) => {
    await refuse(scene, 0x81, 0x32, 6, 0, 1, 0x61, 0, 0, 0);
    await refuse(scene, 0x81, ...subscribeBytes(scene.version, 0x82, 0, 0));
  }),
  both("an empty SUBSCRIBE is refused", "3.8.3-3", "3.8.3-2", (scene) =>
    refuse(scene, 0x82, 0x82, ...(scene.version === 5 ? [3, 0, 1, 0] : [2, 0, 1])),
  ),
  both("an empty UNSUBSCRIBE is refused", "3.10.3-2", "3.10.3-2", (scene) =>
    refuse(scene, 0x82, 0xa2, ...(scene.version === 5 ? [3, 0, 1, 0] : [2, 0, 1])),
  ),
  both("reserved bits of subscription options are refused", "3.8.3-4", "3.8.3-5", async (scene) => {
    await refuse(scene, 0x81, ...subscribeBytes(scene.version, 0x82, 1, 0x80));
    await refuse(scene, 0x81, ...subscribeBytes(scene.version, 0x82, 1, 0x03));
  }),
  both(
    "texts of a SUBSCRIBE and UNSUBSCRIBE are UTF-8",
    "3.8.3-1 3.10.3-1",
    "3.8.3-1 3.10.3-1",
    async (scene) => {
      const bytes = subscribeBytes(scene.version, 0x82, 1, 0);
      bytes[bytes.length - 2] = 0xff;
      await refuse(scene, 0x81, ...bytes);
      const body = [0, 1, ...(scene.version === 5 ? [0] : []), 0, 1, 0xff];
      await refuse(scene, 0x81, 0xa2, body.length, ...body);
    },
  ),
  five("retain handling 3 is a protocol error", "", (scene) =>
    refuse(scene, 0x82, ...subscribeBytes(5, 0x82, 1, 0x30)),
  ),
  five("no local with a shared subscription is a protocol error", "3.8.3-4", async (scene) => {
    const client = await scene.connect();
    client.send({
      cmd: "subscribe",
      messageId: 1,
      subscriptions: [{ topic: "$share/g/a", qos: 0, nl: true }],
    });
    assert.equal((await client.closed()).reasonCode, 0x82);
  }),
  five("properties that do not belong to a packet are malformed", "", (scene) =>
    refuse(scene, 0x81, 0x30, 9, 0, 1, 0x61, 5, 0x11, 0, 0, 0, 1),
  ),
  five("a property that is there twice is a protocol error", "", (scene) =>
    refuse(scene, 0x82, 0x30, 8, 0, 1, 0x61, 4, 0x01, 0, 0x01, 0),
  ),
  five("a subscription identifier of a client is a protocol error", "3.3.4-6", (scene) =>
    refuse(scene, 0x82, 0x30, 6, 0, 1, 0x61, 2, 0x0b, 1),
  ),
  five("receive maximum 0 is a protocol error", "", async (scene) => {
    const client = await scene.open();
    client.sendBytes(0x10, 17, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 0, 3, 0x21, 0, 0, 0, 1, 0x61);
    assert.equal((await client.closed()).reasonCode, 0x82);
  }),
  five(
    "an unknown reason code is malformed",
    "3.14.2-1 3.4.2-1 3.6.2-1 3.7.2-1 3.5.2-1",
    async (scene) => {
      await refuse(scene, 0x81, 0xe0, 1, 0x7f);
      await refuse(scene, 0x81, 0x40, 3, 0, 1, 0x7f);
    },
  ),
  five(
    "AUTH without an authentication method is a protocol error",
    "4.12.0-7 4.12.0-6 3.15.1-1 3.15.2-1",
    async (scene) => {
      await refuse(scene, 0x82, 0xf0, 0);
      await refuse(scene, 0x81, 0xf1, 0);
    },
  ),
  five(
    "an unknown authentication method is refused",
    "4.12.0-1 4.12.0-4 3.2.2-6",
    async (scene) => {
      const client = await scene.open();
      client.send(createConnect(5, { properties: { authenticationMethod: "GS2-KRB5" } }));
      const connack = await client.next("connack");
      assert.equal(connack.reasonCode, 0x8c);
      assert.equal(connack.sessionPresent, false);
      await client.closed();
    },
  ),
  both("a packet above the maximum is refused by its length", "", "3.2.2-15", async (scene) => {
    const client = await scene.connect();
    client.sendBytes(0x30, 0xff, 0xff, 0xff, 0x7f);
    const last = await client.closed();
    if (scene.version === 5) assert.equal(last.reasonCode, 0x95);
  }),
  both("a truncated packet closes the connection", "", "", (scene) =>
    refuse(scene, 0x81, 0x32, 2, 0, 9),
  ),
];
