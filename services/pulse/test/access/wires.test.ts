// Topic rules and limits per user are the same over all wire protocols.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  fetch,
  metadata,
  saslAuthenticate,
  saslHandshake,
} from "../../src/kafka/protocol/messages/index.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { KafkaClient } from "../kafka/client.ts";
import { createConnect, RawClient } from "../mqtt/client.ts";
import { StompClient } from "../stomp/client.ts";

const OPERATOR = { authorization: "Bearer operator-token" };
const ROLE = "/api/v1/access/roles/reader";
const everything = {
  authorization: `Bearer ${makeToken({ scope: "pulse:publish pulse:subscribe" })}`,
};
const reader = makeToken({ scope: "", roles: ["reader"] });

async function start(t: TestContext, env: Record<string, string> = {}) {
  const feed = await startFeed(t);
  return startPulseHere(t, { ...feed.env, PLATFORM_PULSE_ANONYMOUS: "never", ...env });
}

async function setRules(pulse: PulseHere, ...topics: string[]): Promise<void> {
  const { status } = await pulse.get(ROLE, {
    method: "PUT",
    headers: { ...OPERATOR, "content-type": "application/json" },
    body: JSON.stringify({ rules: topics.map((each) => ({ topics: each, allow: ["subscribe"] })) }),
  });
  assert.equal(status, 200);
}

async function publish(pulse: PulseHere, topic: string, payload: string): Promise<void> {
  const message = { topic, payload };
  assert.equal((await pulse.post("/api/v1/publish", message, everything)).status, 200);
}

async function connectMqtt(t: TestContext, pulse: PulseHere, more: object = {}) {
  const client = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => client.socket.destroy());
  await client.connect({ username: "x", password: Buffer.from(reader), ...more });
  return client;
}

async function connectStomp(t: TestContext, pulse: PulseHere, login = "x") {
  const client = await StompClient.connect(pulse.stompPort, "1.2", { login, passcode: reader });
  t.after(() => client.close());
  return client;
}

async function authenticateKafka(t: TestContext, pulse: PulseHere, name = "x") {
  const client = await KafkaClient.connect(pulse.kafkaPort);
  t.after(() => client.socket.destroy());
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0${name}\0${reader}`);
  return { client, ...(await client.ask(saslAuthenticate, 2, { authBytes })) };
}

for (const filter of ["lost", "+", "$share/g/lost"]) {
  test(`MQTT: a removed rule ends a subscription to ${filter}`, async (t) => {
    const pulse = await start(t);
    await setRules(pulse, "lost", "kept");
    await publish(pulse, "lost", "1");
    await publish(pulse, "kept", "1");
    const loser = await connectMqtt(t, pulse);
    assert.deepEqual((await loser.subscribe(filter)).granted, [0]);
    const keeper = await connectMqtt(t, pulse);
    await keeper.subscribe("kept");
    await setRules(pulse, "kept");
    const { cmd, reasonCode } = await loser.closed();
    assert.deepEqual([cmd, reasonCode], ["disconnect", 0x87]);
    await publish(pulse, "kept", "2");
    assert.equal(String((await keeper.next("publish")).payload), "2");
  });
}

test("MQTT: a session comes back without the topic of a removed rule", async (t) => {
  const pulse = await start(t);
  await setRules(pulse, "lost", "kept");
  await publish(pulse, "lost", "1");
  await publish(pulse, "kept", "1");
  const session = { clientId: "c", clean: false, properties: { sessionExpiryInterval: 600 } };
  const client = await connectMqtt(t, pulse, session);
  await client.subscribe("#", { qos: 1 });
  await setRules(pulse, "kept");
  assert.equal((await client.closed()).reasonCode, 0x87);
  await publish(pulse, "lost", "2");
  await publish(pulse, "kept", "2");
  const back = await connectMqtt(t, pulse, session);
  const { topic, payload, messageId } = await back.next("publish");
  assert.deepEqual([topic, String(payload)], ["kept", "2"]);
  back.send({ cmd: "puback", messageId, reasonCode: 0 });
  await back.expectNothing();
});

for (const [title, headers] of [
  ["a topic", { destination: "/topic/lost" }],
  ["a topic, acknowledged", { destination: "/topic/lost", ack: "client" }],
  ["a pattern", { destination: "/topic/*" }],
  ["a pattern, acknowledged", { destination: "/topic/*", ack: "client-individual" }],
  ["a group", { destination: "/queue/lost" }],
] as const) {
  test(`STOMP: a removed rule ends a subscription to ${title}`, async (t) => {
    const pulse = await start(t);
    await setRules(pulse, "lost", "kept");
    await publish(pulse, "lost", "1");
    await publish(pulse, "kept", "1");
    const loser = await connectStomp(t, pulse);
    await loser.ask("SUBSCRIBE", { id: "s", ...headers });
    const keeper = await connectStomp(t, pulse);
    await keeper.ask("SUBSCRIBE", { id: "s", destination: "/topic/kept" });
    await setRules(pulse, "kept");
    assert.match((await loser.error()).body, /the right to subscribe was withdrawn/);
    await publish(pulse, "kept", "2");
    assert.deepEqual(await keeper.bodies(1), ["2"]);
  });
}

test("STOMP: a removed rule refuses the messages of a transaction that began before", async (t) => {
  const pulse = await start(t);
  const setPublisher = (topics: string) =>
    pulse.get(ROLE, {
      method: "PUT",
      headers: { ...OPERATOR, "content-type": "application/json" },
      body: JSON.stringify({ rules: [{ topics, allow: ["publish"] }] }),
    });
  await setPublisher("lost");
  const client = await connectStomp(t, pulse);
  await client.ask("BEGIN", { transaction: "t" });
  await client.ask("SEND", { transaction: "t", destination: "/topic/lost" }, "late");
  await setPublisher("kept");
  client.send("COMMIT", { transaction: "t" });
  assert.match((await client.error()).body, /publishing to lost is not allowed/);
  assert.equal((await pulse.get("/api/v1/topics/lost", { headers: OPERATOR })).status, 404);
});

test("Kafka: a Fetch that waits when its rule is removed has no records", async (t) => {
  const pulse = await start(t);
  await setRules(pulse, "lost");
  await publish(pulse, "lost", "1");
  const { client } = await authenticateKafka(t, pulse);
  const fetching = client.ask(fetch, 11, {
    replicaId: -1,
    maxWaitMs: 30_000,
    minBytes: 1,
    maxBytes: 1_000_000,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [
      {
        name: "lost",
        partitions: [
          {
            partition: 0,
            currentLeaderEpoch: -1,
            fetchOffset: 1,
            logStartOffset: -1,
            partitionMaxBytes: 1_000_000,
          },
        ],
      },
    ],
    forgottenTopics: [],
    rackId: "",
  });
  // Answered by another connection after the Fetch has arrived.
  await (
    await authenticateKafka(t, pulse)
  ).client.ask(metadata, 4, {
    topics: [{ name: "lost" }],
    allowAutoTopicCreation: false,
  });
  await setRules(pulse, "other");
  await publish(pulse, "lost", "secret");
  const { topics } = await fetching;
  const [{ errorCode, records }] = topics[0]!.partitions as [(typeof topics)[0]["partitions"][0]];
  assert.equal(errorCode, ERROR_CODES.topicAuthorizationFailed);
  assert.equal(Buffer.concat([records ?? Buffer.alloc(0)].flat()).length, 0);
});

test("connections are limited per user, whatever name comes with the token", async (t) => {
  const pulse = await start(t, {
    PLATFORM_PULSE_KAFKA_CONNECTIONS_PER_USER_MAX: "2",
    PLATFORM_PULSE_MQTT_CONNECTIONS_PER_USER_MAX: "2",
    PLATFORM_PULSE_STOMP_CONNECTIONS_PER_USER_MAX: "2",
  });
  await setRules(pulse, "a");
  const first = await authenticateKafka(t, pulse, "a");
  assert.equal(first.errorCode, ERROR_CODES.none);
  assert.equal((await authenticateKafka(t, pulse, "b")).errorCode, ERROR_CODES.none);
  const third = await authenticateKafka(t, pulse, "c");
  assert.equal(third.errorCode, ERROR_CODES.saslAuthenticationFailed);
  assert.match(third.errorMessage ?? "", /too many connections/);
  first.client.socket.destroy();
  await retry(async () => {
    const { errorCode } = await authenticateKafka(t, pulse, "d");
    return errorCode === ERROR_CODES.none;
  });

  await connectStomp(t, pulse, "a");
  const stomp = await connectStomp(t, pulse, "b");
  const stompThird = StompClient.open(pulse.stompPort);
  stompThird.send("CONNECT", { "accept-version": "1.2", login: "c", passcode: reader });
  assert.match((await stompThird.error()).body, /too many connections/);
  stomp.close();
  await retry(() => connectStomp(t, pulse, "d").then(Boolean, () => false));

  await connectMqtt(t, pulse, { username: "a" });
  await connectMqtt(t, pulse, { username: "b" });
  const mqttThird = await RawClient.open(pulse.mqttPort, 5);
  t.after(() => mqttThird.socket.destroy());
  mqttThird.send(createConnect(5, { username: "c", password: Buffer.from(reader) }));
  assert.equal((await mqttThird.next("connack")).reasonCode, 0x97);
});

/** Until the broker has seen the end of a connection. */
async function retry(attempt: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await attempt())) {
    assert.ok(performance.now() < deadline, "the connection still counts");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
