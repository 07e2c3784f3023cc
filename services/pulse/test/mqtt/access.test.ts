// Users, tokens, topic rules, revocation and limits of MQTT clients.
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { test, type TestContext } from "node:test";
import mqttPacket from "mqtt-packet";
import { WebSocket } from "ws";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { createConnect, RawClient, type Received } from "./client.ts";

async function start(t: TestContext, env: Record<string, string> = {}) {
  const feed = await startFeed(t);
  const folder = mkdtempSync(join(tmpdir(), "platform-mqtt-users-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const users = join(folder, "users.json");
  const both = ["shop", "store"].map((name) => ({
    name,
    password: `${name} pass`,
    tenant: "acme",
  }));
  writeFileSync(users, JSON.stringify(both));
  const pulse = await startPulseHere(t, {
    ...feed.env,
    PLATFORM_PULSE_USERS_FILE: users,
    PLATFORM_PULSE_ANONYMOUS: "never",
    ...env,
  });
  const open = async (version: 4 | 5 = 5) => {
    const client = await RawClient.open(pulse.mqttPort, version);
    t.after(() => client.socket.destroy());
    return client;
  };
  const connect = async (username: string, password: string, more: Received = {}) => {
    const client = await open(more.version ?? 5);
    await client.connect({ username, password: Buffer.from(password), ...more });
    return client;
  };
  return { feed, pulse, open, connect };
}

async function setRules(pulse: PulseHere, role: string, rules: object[]) {
  const answer = await pulse.get(`/api/v1/access/roles/${role}`, {
    method: "PUT",
    headers: { authorization: "Bearer operator-token", "content-type": "application/json" },
    body: JSON.stringify({ rules }),
  });
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
}

test("users and tokens connect to their tenant, others are refused", async (t) => {
  const { open, connect } = await start(t);
  for (const version of [4, 5] as const) {
    for (const credentials of [
      {},
      { username: "shop", password: Buffer.from("wrong") },
      { username: "nobody", password: Buffer.from("shop pass") },
      { username: "shop" },
      { username: "u", password: Buffer.from("a.b.c") },
    ]) {
      const client = await open(version);
      client.send(createConnect(version, credentials));
      const connack = await client.next("connack");
      assert.equal(connack.reasonCode ?? connack.returnCode, version === 5 ? 0x86 : 4);
      await client.closed();
    }
  }
  const shop = await connect("shop", "shop pass");
  await shop.subscribe("orders/#", { qos: 1 });
  const operator = await connect("any", "operator-token");
  await operator.publish("orders/a", "of the operator");
  const token = makeToken({ scope: "pulse:publish", tenant: "acme" });
  const device = await connect("device", token);
  await device.publish("orders/a", "of the tenant");
  const message = await shop.next("publish");
  assert.equal(String(message.payload), "of the tenant");
});

test("sessions belong to their user: the same identifier of another user is another session", async (t) => {
  const { connect } = await start(t);
  const kept = { clientId: "same", clean: false, properties: { sessionExpiryInterval: 60 } };
  const shop = await connect("shop", "shop pass", kept);
  const store = await connect("store", "store pass", kept);
  await shop.expectNothing();
  await store.expectNothing();
});

test("scopes and topic rules decide who publishes and subscribes", async (t) => {
  const { pulse, connect } = await start(t);
  await setRules(pulse, "sensor", [{ topics: "home.#", allow: ["publish", "subscribe"] }]);
  const sensor = await connect("s", makeToken({ scope: "", roles: ["sensor"] }));
  assert.equal((await sensor.publish("home/kitchen", "x")).reasonCode ?? 0, 0);
  assert.equal((await sensor.publish("secret", "x")).reasonCode, 0x87);
  assert.equal((await sensor.publish("secret", "x", { qos: 2 })).reasonCode, 0x87);
  assert.deepEqual((await sensor.subscribe("secret")).granted, [0x87]);
  assert.deepEqual((await sensor.subscribe("home/kitchen")).granted, [0]);
  assert.deepEqual((await sensor.subscribe("#", { qos: 1 })).granted, [1]);
  const other = await connect("o", makeToken({ scope: "pulse:publish" }));
  assert.deepEqual((await other.subscribe("#")).granted, [0x87]);
  await other.publish("secret/new", "hidden", { retain: true });
  await other.publish("home/new", "seen");
  assert.equal(String((await sensor.next("publish")).payload), "seen");
  const old = await connect("s", makeToken({ scope: "", roles: ["sensor"] }), { version: 4 });
  assert.deepEqual((await old.subscribe("secret")).granted, [0x80]);
  old.send({
    cmd: "publish",
    topic: "secret",
    payload: "x",
    qos: 1,
    messageId: 1,
    dup: false,
    retain: false,
  });
  await old.closed();
});

test("a will needs the right for its topic", async (t) => {
  const { open } = await start(t);
  const client = await open();
  const password = Buffer.from(makeToken({ scope: "pulse:subscribe" }));
  const will = { topic: "gone", payload: Buffer.from("x"), qos: 0, retain: false };
  client.send(createConnect(5, { username: "u", password, will }));
  assert.equal((await client.next("connack")).reasonCode, 0x87);
});

test("a revoked token ends the connection, an expired one as well", async (t) => {
  const { feed, connect } = await start(t);
  const client = await connect("u", makeToken({ scope: "pulse:publish", sid: "s-1" }));
  const exp = Math.floor(Date.now() / 1_000) + 2;
  const short = await connect("u", makeToken({ scope: "pulse:publish", exp }));
  feed.revoke("s-1");
  assert.equal((await client.closed()).reasonCode, 0x87);
  assert.equal((await short.closed()).reasonCode, 0xa0);
});

test("connections are limited per user and per address", async (t) => {
  const { pulse, open, connect } = await start(t, {
    PLATFORM_PULSE_MQTT_CONNECTIONS_PER_USER_MAX: "2",
    PLATFORM_PULSE_MQTT_CONNECTIONS_PER_ADDRESS_MAX: "4",
  });
  await connect("shop", "shop pass");
  const second = await connect("shop", "shop pass");
  const third = await open();
  third.send(createConnect(5, { username: "shop", password: Buffer.from("shop pass") }));
  assert.equal((await third.next("connack")).reasonCode, 0x97);
  await third.closed();
  await connect("store", "store pass");
  await second.disconnect();
  const extra = [await open(), await open(), await open()];
  await extra[2]!.closed();
  const { body } = await pulse.get("/metrics", {
    headers: { authorization: "Bearer operator-token" },
  });
  assert.match(String(body), /platform_pulse_mqtt_refused_connections_total [1-9]/);
});

test("pages of other origins may not connect without credentials", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_CORS_ORIGINS: JSON.stringify(["http://friend.test"]),
  });
  const own = `http://127.0.0.1:${pulse.port}`;
  for (const [origin, code] of [
    ["http://evil.test", 0x86],
    ["http://friend.test", 0x86],
    [own, 0],
    [undefined, 0],
  ] as const) {
    const socket = new WebSocket(`ws://127.0.0.1:${pulse.port}/mqtt`, ["mqtt"], { origin });
    t.after(() => socket.terminate());
    await once(socket, "open");
    socket.send(mqttPacket.generate(createConnect(5), { protocolVersion: 5 }));
    const [bytes] = (await once(socket, "message")) as [Buffer];
    assert.equal(bytes[0], 0x20);
    assert.equal(bytes[3], code, origin ?? "no origin");
  }
});
