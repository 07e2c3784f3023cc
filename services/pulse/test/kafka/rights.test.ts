// Rights of Kafka clients that authenticate with a token.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Kafka, logLevel } from "kafkajs";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  metadata,
  saslAuthenticate,
  saslHandshake,
} from "../../src/kafka/protocol/messages/index.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";
import { KafkaClient } from "./client.ts";

async function start(t: TestContext) {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, { ...feed.env, PLATFORM_PULSE_ANONYMOUS: "never" });
  const headers = { authorization: `Bearer ${makeToken({ scope: "pulse:publish" })}` };
  await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, headers);
  return { pulse, feed };
}

async function authenticate(port: number, claims: Record<string, unknown>) {
  const client = await KafkaClient.connect(port);
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0anyone\0${makeToken(claims)}`);
  const { errorCode } = await client.ask(saslAuthenticate, 2, { authBytes });
  return { client, errorCode };
}

test("a token without a scope of messaging cannot authenticate; any of them sees the topics", async (t) => {
  const { pulse } = await start(t);
  const none = await authenticate(pulse.kafkaPort, { scope: "vault:read" });
  assert.equal(none.errorCode, ERROR_CODES.saslAuthenticationFailed);
  const { client } = await authenticate(pulse.kafkaPort, { scope: "pulse:manage" });
  const { topics } = await client.ask(metadata, 12, { topics: null });
  assert.deepEqual(
    topics.map(({ name }) => name),
    ["a"],
  );
  await client[Symbol.asyncDispose]();
});

test("the connection of a revoked session closes within 2 s, and only that one", async (t) => {
  const { pulse, feed } = await start(t);
  const scope = "pulse:subscribe";
  const ended = await authenticate(pulse.kafkaPort, { scope, sid: "s1" });
  const kept = await authenticate(pulse.kafkaPort, { scope, sid: "s2" });
  const startedMs = performance.now();
  feed.revoke("s1");
  while (!ended.client.isClosed && performance.now() - startedMs < 20_000) await sleep(20);
  assert.ok(ended.client.isClosed);
  assert.ok(!kept.client.isClosed);
  await kept.client.ask(metadata, 12, { topics: null });
  await kept.client[Symbol.asyncDispose]();
  const again = await authenticate(pulse.kafkaPort, { scope, sid: "s1" });
  assert.equal(again.errorCode, ERROR_CODES.saslAuthenticationFailed);
});

test("kafkajs publishes and reads with tokens of the right scope and reports the missing one", async (t) => {
  const { pulse } = await start(t);
  const connect = (scope: string) =>
    new Kafka({
      brokers: [`127.0.0.1:${pulse.kafkaPort}`],
      sasl: { mechanism: "plain", username: "app", password: makeToken({ scope }) },
      ssl: false,
      logLevel: logLevel.NOTHING,
      retry: { retries: 0 },
    });
  const producer = connect("pulse:publish").producer();
  await producer.connect();
  await producer.send({ topic: "a", messages: [{ value: "by kafkajs" }] });
  await producer.disconnect();
  const stranger = connect("pulse:subscribe").producer();
  await stranger.connect();
  await assert.rejects(
    stranger.send({ topic: "a", messages: [{ value: "x" }] }),
    /not authorized|authoriz/i,
  );
  await stranger.disconnect();
  const admin = connect("pulse:publish").admin();
  await admin.connect();
  await assert.rejects(admin.createTopics({ topics: [{ topic: "new" }] }));
  await admin.disconnect();
});
