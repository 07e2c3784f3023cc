// CONNECT, sessions, wills, keep-alive, the end of connections.
import assert from "node:assert/strict";
import { once } from "node:events";
import { WebSocket } from "ws";
import {
  createConnect,
  mqttPacket,
  type Received,
} from "../../../services/pulse/test/mqtt/client.ts";
import { both, five, four, type Case, type Scene } from "./case.ts";

/** A client with a will, and another one that is subscribed to its topic. */
async function arrangeWill(scene: Scene, will: Received = {}, connect: Received = {}) {
  const topic = scene.createName("will");
  const watcher = await scene.connect();
  await watcher.subscribe(topic, { qos: 1 });
  const client = await scene.connect({
    clientId: scene.createName(),
    will: { topic, payload: Buffer.from("gone"), qos: 1, retain: false, ...will },
    ...connect,
  });
  return { topic, watcher, client };
}

export const sessionCases: Case[] = [
  both(
    "CONNACK is first, accepts, and comes once",
    "3.2.0-1 3.1.4-4",
    "3.2.0-1 3.2.0-2 3.1.4-5 3.2.2-1 3.2.2-8",
    async (scene) => {
      const client = await scene.open();
      client.send(createConnect(scene.version));
      const connack = await client.next("connack");
      assert.equal(connack.sessionPresent, false);
      await client.expectNothing();
    },
  ),
  both(
    "clean start discards the session, otherwise it is kept",
    "3.1.2-4 3.1.2-5 3.1.2-6 3.1.4-3 3.2.2-1 3.2.2-2 3.2.2-3 4.1.0-1 4.1.0-2",
    "3.1.2-4 3.1.2-5 3.1.2-6 3.1.2-23 3.1.4-4 3.2.2-2 3.2.2-3 4.1.0-1",
    async (scene) => {
      const clientId = scene.createName();
      const kept = scene.version === 5 ? { properties: { sessionExpiryInterval: 600 } } : {};
      const first = await scene.open();
      assert.equal(
        (await first.connect({ clientId, clean: false, ...kept })).sessionPresent,
        false,
      );
      await first.subscribe(clientId, { qos: 1 });
      await first.disconnect();
      await (await scene.connect()).publish(clientId, "while away");
      const second = await scene.open();
      assert.equal(
        (await second.connect({ clientId, clean: false, ...kept })).sessionPresent,
        true,
      );
      const message = await second.next("publish");
      assert.equal(String(message.payload), "while away");
      second.send({ cmd: "puback", messageId: message.messageId });
      await second.expectNothing();
      await second.disconnect();
      const third = await scene.open();
      assert.equal((await third.connect({ clientId, clean: true })).sessionPresent, false);
      await (await scene.connect()).publish(clientId, "nobody");
      await third.expectNothing();
    },
  ),
  five(
    "a session ends when its expiry has passed, or with DISCONNECT",
    "4.1.0-2",
    async (scene) => {
      const clientId = scene.createName();
      const resume = async (sessionExpiryInterval: number) => {
        const client = await scene.open();
        const properties = { sessionExpiryInterval };
        const { sessionPresent } = await client.connect({ clientId, clean: false, properties });
        return { client, sessionPresent };
      };
      const first = await scene.connectKept(clientId);
      await first.disconnect({ properties: { sessionExpiryInterval: 1 } });
      // The interval began before the connection was seen to close, so it is over after this, however slow anything is.
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      const second = await resume(600);
      assert.equal(second.sessionPresent, false, "the interval has passed");
      await second.client.disconnect({ properties: { sessionExpiryInterval: 0 } });
      assert.equal((await resume(0)).sessionPresent, false, "it was to end with the connection");
    },
  ),
  five(
    "a session that was to end with the connection cannot be kept by DISCONNECT",
    "",
    async (scene) => {
      const client = await scene.connect();
      client.send({ cmd: "disconnect", reasonCode: 0, properties: { sessionExpiryInterval: 10 } });
      assert.equal((await client.closed()).reasonCode, 0x82);
    },
  ),
  both(
    "another connection with the identifier takes over",
    "3.1.4-2",
    "3.1.4-3 3.1.3-2",
    async (scene) => {
      const clientId = scene.createName();
      const first = await scene.connectKept(clientId);
      await scene.connectKept(clientId);
      const last = await first.closed();
      if (scene.version === 5) assert.equal(last.reasonCode, 0x8e);
    },
  ),
  both(
    "a client identifier may have up to 256 bytes of UTF-8",
    "3.1.3-1 3.1.3-2 3.1.3-3 3.1.3-5 3.1.3-9",
    "3.1.3-1 3.1.3-3 3.1.3-5 3.1.3-8",
    async (scene) => {
      await scene.connect({
        clientId: "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".slice(0, 23),
      });
      await scene.connect({ clientId: "möbel/日本 #+" });
      const client = await scene.open();
      client.send(createConnect(scene.version, { clientId: "x".repeat(257) }));
      const connack = await client.next("connack");
      assert.equal(connack.reasonCode ?? connack.returnCode, scene.version === 5 ? 0x85 : 2);
      await client.closed();
    },
  ),
  five("a missing client identifier is assigned", "3.1.3-6 3.1.3-7 3.2.2-16", async (scene) => {
    const client = await scene.open();
    client.sendBytes(
      0x10,
      18,
      0,
      4,
      0x4d,
      0x51,
      0x54,
      0x54,
      5,
      0,
      0,
      0,
      5,
      0x11,
      0,
      0,
      0,
      60,
      0,
      0,
    );
    const connack = await client.next("connack");
    const clientId = connack.properties!.assignedClientIdentifier!;
    assert.notEqual(clientId, "");
    await client.drop();
    const again = await scene.open();
    const present = await again.connect({
      clientId,
      clean: false,
      properties: { sessionExpiryInterval: 60 },
    });
    assert.equal(present.sessionPresent, true);
  }),
  four(
    "an empty client identifier needs a clean session",
    "3.1.3-6 3.1.3-7 3.1.3-8 3.2.2-4 3.2.2-5",
    async (scene) => {
      await scene.connect({ clientId: "", clean: true });
      const client = await scene.open();
      client.sendBytes(0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0, 0, 0, 0, 0);
      const connack = await client.next("connack");
      assert.equal(connack.returnCode, 2);
      assert.equal(connack.sessionPresent, false);
      await client.closed();
    },
  ),
  both(
    "a will is published when the connection breaks",
    "3.1.2-8 3.1.2-16",
    "3.1.2-7 3.1.2-8 3.1.2-14 3.1.3-11",
    async (scene) => {
      const { watcher, client } = await arrangeWill(scene);
      await client.drop();
      const will = await watcher.next("publish");
      assert.equal(String(will.payload), "gone");
      assert.equal(will.retain, false);
    },
  ),
  both(
    "a will is removed by DISCONNECT",
    "3.1.2-10 3.14.4-1 3.14.4-2 3.14.4-3",
    "3.1.2-10 3.14.4-1 3.14.4-2 3.14.4-3",
    async (scene) => {
      const { watcher, client } = await arrangeWill(scene);
      await client.disconnect();
      await (await scene.connect()).publish("unrelated", "x");
      await watcher.expectNothing();
    },
  ),
  five("DISCONNECT 0x04 publishes the will", "3.1.2-8", async (scene) => {
    const { watcher, client } = await arrangeWill(scene);
    await client.disconnect({ reasonCode: 4 });
    await watcher.next("publish");
  }),
  both("a retained will is retained", "3.1.2-17 3.1.2-7", "3.1.2-15", async (scene) => {
    const { topic, watcher, client } = await arrangeWill(scene, { retain: true });
    await client.drop();
    await watcher.next("publish");
    const later = await scene.connect();
    await later.subscribe(topic);
    assert.equal((await later.next("publish")).retain, true);
  }),
  both(
    "a will is published after a protocol error",
    "4.8.0-1 4.8.0-2",
    "3.1.2-8",
    async (scene) => {
      const { watcher, client } = await arrangeWill(scene);
      client.sendBytes(0x30, 0x00);
      await client.closed();
      await watcher.next("publish");
    },
  ),
  five("a delayed will is not sent if the client is back before", "3.1.3-9", async (scene) => {
    const clientId = scene.createName();
    const connect = { clientId, clean: false, properties: { sessionExpiryInterval: 600 } };
    const { watcher, client } = await arrangeWill(
      scene,
      { properties: { willDelayInterval: 2 } },
      connect,
    );
    await client.drop();
    await scene.connect(connect);
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    await watcher.expectNothing();
  }),
  five(
    "a delayed will comes after its delay, or with the end of the session",
    "3.1.2-8",
    async (scene) => {
      const { watcher, client } = await arrangeWill(
        scene,
        { properties: { willDelayInterval: 1 } },
        { properties: { sessionExpiryInterval: 600 } },
      );
      await client.drop();
      await watcher.next("publish");
      const ended = await arrangeWill(scene, { properties: { willDelayInterval: 600 } });
      await ended.client.drop();
      await ended.watcher.next("publish");
    },
  ),
  five("user properties of a will keep their order", "3.1.3-10", async (scene) => {
    const userProperties = { b: ["1", "2"], a: "3" };
    const { watcher, client } = await arrangeWill(scene, {
      properties: { userProperties, contentType: "text/x" },
    });
    await client.drop();
    const { properties } = await watcher.next("publish");
    assert.deepEqual({ ...properties.userProperties }, userProperties);
    assert.equal(properties.contentType, "text/x");
  }),
  both(
    "a silent client is disconnected after one and a half keep-alives",
    "3.1.2-24",
    "3.1.2-22 3.2.2-22",
    async (scene) => {
      const client = await scene.connect({ keepalive: 1 });
      const since = performance.now();
      const last = await client.closed();
      assert.ok(performance.now() - since >= 1_400, "too early");
      if (scene.version === 5) assert.equal(last.reasonCode, 0x8d);
    },
  ),
  both("a PINGREQ is answered", "3.12.4-1", "3.12.4-1", async (scene) => {
    await (await scene.connect()).expectNothing();
  }),
  five(
    "the server tells its limits, and a keep-alive if the client has none",
    "3.2.2-9",
    async (scene) => {
      const client = await scene.open();
      const { properties } = await client.connect({
        properties: { requestResponseInformation: true },
      });
      assert.equal(properties!.serverKeepAlive, 3_600);
      assert.equal(properties!.receiveMaximum, 1_000);
      assert.equal(properties!.topicAliasMaximum, 64);
      assert.equal(properties!.maximumQoS, undefined);
      assert.match(String(properties!.responseInformation), /^responses\//);
    },
  ),
  both(
    "over WebSocket: the subprotocol, frames that split packets, binary frames only",
    "6.0.0-1 6.0.0-2 6.0.0-4",
    "6.0.0-1 6.0.0-2 6.0.0-4",
    async (scene) => {
      const { pulse, version } = scene;
      for (const path of ["/mqtt", "/anything"]) {
        const socket = new WebSocket(`ws://127.0.0.1:${pulse.port}${path}`, ["mqtt"]);
        await once(socket, "open");
        assert.equal(socket.protocol, "mqtt");
        const connect = mqttPacket.generate(createConnect(version), { protocolVersion: version });
        const bytes = Buffer.concat([connect, Buffer.from([0xc0, 0])]);
        const received: Buffer[] = [];
        socket.on("message", (data) => received.push(data as Buffer));
        for (const byte of bytes) socket.send(Buffer.from([byte]));
        while (!Buffer.concat(received).includes(Buffer.from([0xd0, 0])))
          await once(socket, "message");
        assert.equal(received[0]![0], 0x20);
        socket.send("text");
        await once(socket, "close");
      }
    },
  ),
  five("response information is only sent if it was requested", "3.1.2-28", async (scene) => {
    const client = await scene.open();
    const { properties } = await client.connect({});
    assert.equal(properties!.responseInformation, undefined);
  }),
  five("a session expiry above the maximum is shortened", "", async (scene) => {
    const client = await scene.open();
    const { properties } = await client.connect({
      properties: { sessionExpiryInterval: 0xffff_ffff },
    });
    assert.equal(properties!.sessionExpiryInterval, 604_800);
  }),
];
