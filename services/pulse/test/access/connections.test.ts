// The list of open connections: every protocol, its client, pages, and who may see it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { WebSocket } from "ws";
import { saslAuthenticate, saslHandshake } from "../../src/kafka/protocol/messages/index.ts";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, makeToken, startFeed } from "../fixture/tokens.ts";
import { KafkaClient } from "../kafka/client.ts";
import { RawClient } from "../mqtt/client.ts";
import { StompClient } from "../stomp/client.ts";

const token = makeToken({ sub: "ann", scope: "pulse:publish pulse:subscribe" });
const SHOWN_MAX = 20;

interface Row {
  id: string;
  protocol: string;
  transport: string;
  address: string;
  user: string | null;
  tenant?: string;
  client_id: string | null;
  since: string;
  subscriptions: string[];
  subscription_count: number;
}

async function start(t: TestContext): Promise<PulseHere> {
  const { env } = await startFeed(t);
  return startPulseHere(t, { ...env, PLATFORM_PULSE_ANONYMOUS: "never" });
}

async function list(pulse: PulseHere, query: string): Promise<Row[]> {
  const { status, body } = await pulse.get(`/api/v1/connections?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.connections as Row[];
}

async function openMqtt(t: TestContext, pulse: PulseHere, clientId: string) {
  const client = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => client.socket.destroy());
  await client.connect({ clientId, username: "x", password: Buffer.from(token) });
  return client;
}

async function openStomp(t: TestContext, pulse: PulseHere) {
  const client = await StompClient.connect(pulse.stompPort, "1.2", {
    login: "x",
    passcode: token,
    "client-id": "printer",
  });
  t.after(() => client.close());
  await client.ask("SUBSCRIBE", { id: "7", destination: "/topic/orders" });
  return client;
}

async function openKafka(t: TestContext, pulse: PulseHere) {
  const client = await KafkaClient.connect(pulse.kafkaPort);
  t.after(() => client.socket.destroy());
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  await client.ask(saslAuthenticate, 2, { authBytes: Buffer.from(`\0x\0${token}`) });
}

async function openHttp(t: TestContext, pulse: PulseHere) {
  const headers = { authorization: `Bearer ${token}` };
  const stream = await EventReader.open(`${pulse.url}/api/v1/subscribe/orders.%2A`, headers);
  t.after(() => stream.close());
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/orders?group=g`, {
    headers,
  });
  t.after(() => socket.terminate());
  await once(socket, "open");
}

test("connections of all protocols are listed with their clients and subscriptions", async (t) => {
  const pulse = await start(t);
  const before = Date.now();
  await openHttp(t, pulse);
  await openKafka(t, pulse);
  const mqtt = await openMqtt(t, pulse, "sensor");
  await mqtt.subscribe("orders/+");
  await openStomp(t, pulse);
  const rows = await list(pulse, "tenant=main");
  for (const { since } of rows) {
    assert.ok(Date.parse(since) >= before && Date.parse(since) <= Date.now(), since);
  }
  const own = { address: "127.0.0.1", user: "sub:ann" };
  const expected: Omit<Row, "id" | "since">[] = [
    {
      ...own,
      protocol: "http",
      transport: "sse",
      client_id: null,
      subscriptions: ["orders.*"],
      subscription_count: 1,
    },
    {
      ...own,
      protocol: "http",
      transport: "websocket",
      client_id: null,
      subscriptions: ["orders"],
      subscription_count: 1,
    },
    {
      ...own,
      protocol: "kafka",
      transport: "tcp",
      client_id: "test",
      subscriptions: [],
      subscription_count: 0,
    },
    {
      ...own,
      protocol: "mqtt",
      transport: "tcp",
      client_id: "sensor",
      subscriptions: ["orders/+"],
      subscription_count: 1,
    },
    {
      ...own,
      protocol: "stomp",
      transport: "tcp",
      client_id: "printer",
      subscriptions: ["orders"],
      subscription_count: 1,
    },
  ];
  assert.deepEqual(
    rows.map(({ id: _id, since: _since, ...row }) => row),
    expected,
  );
  const [only] = await list(pulse, "tenant=*&protocol=stomp");
  assert.equal(only!.tenant, "main");
});

test("a client that has not authenticated is shown to the operator alone; a closed connection is gone", async (t) => {
  const pulse = await start(t);
  const client = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => client.socket.destroy());
  while ((await list(pulse, "")).length === 0);
  const [{ user, client_id: clientId, protocol }] = (await list(pulse, "")) as [Row];
  assert.deepEqual([user, clientId, protocol], [null, null, "mqtt"]);
  assert.deepEqual(await list(pulse, "tenant=main"), []);
  await client.drop();
  while ((await list(pulse, "")).length > 0);
});

test("pages follow each other through all protocols, and few subscriptions of many are shown", async (t) => {
  const pulse = await start(t);
  const many = await openMqtt(t, pulse, "many");
  for (let at = 0; at <= SHOWN_MAX; at++) await many.subscribe(`t/${at}`);
  await openMqtt(t, pulse, "second");
  await openStomp(t, pulse);
  await openKafka(t, pulse);
  const names: (string | null)[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { body } = await pulse.get(`/api/v1/connections?tenant=main&limit=1${query}`);
    assert.equal(body.connections.length, 1);
    names.push(body.connections[0].client_id);
    cursor = body.next_cursor as string | null;
  } while (cursor !== null);
  assert.deepEqual(names, ["test", "many", "second", "printer"]);
  const [row] = await list(pulse, "tenant=main&protocol=mqtt");
  assert.deepEqual(
    [row!.subscriptions.length, row!.subscription_count],
    [SHOWN_MAX, SHOWN_MAX + 1],
  );
});

test("only the operator and administrators see connections", async (t) => {
  const pulse = await start(t);
  const get = (headers: Record<string, string>, query = "") =>
    pulse.get(`/api/v1/connections${query}`, { headers });
  assert.equal((await get(asUser("publish subscribe manage"))).status, 403);
  assert.equal((await get(asUser("admin"))).status, 200);
  assert.equal((await get(asUser("admin"), "?cursor=mqtt")).status, 400);
  assert.equal((await get(asUser("admin"), "?limit=1001")).status, 400);
  assert.equal((await get(asUser("admin"), "?protocol=amqp")).status, 400);
});

test("a stopping broker ends STOMP and MQTT over WebSocket, and does not wait for its time to be over", async (t) => {
  const pulse = await startPulseHere(t);
  const frames = {
    stomp: ["v12.stomp", "CONNECT\naccept-version:1.2\nhost:x\n\n\0"],
    mqtt: ["mqtt", Buffer.from("101000044d5154540402003c0004776f7273", "hex")],
  } as const;
  const ended = [];
  for (const [path, [protocol, hello]] of Object.entries(frames)) {
    const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/${path}`, protocol);
    await once(socket, "open");
    socket.send(hello);
    await once(socket, "message");
    ended.push(once(socket, "close"));
  }
  await pulse.stop();
  await Promise.all(ended);
});
