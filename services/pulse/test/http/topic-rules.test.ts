// Topic rules of roles: what a token without scopes may do, over HTTP, WebSocket and Kafka.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { WebSocket } from "ws";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";

const OPERATOR = { authorization: "Bearer operator-token" };
const RULES = "/api/v1/access/roles";

async function start(t: TestContext) {
  const feed = await startFeed(t);
  return startPulseHere(t, { ...feed.env, PLATFORM_PULSE_TOKEN: "operator-token" });
}

type Pulse = Awaited<ReturnType<typeof start>>;

async function setRules(pulse: Pulse, role: string, rules: object[]) {
  return pulse.get(`${RULES}/${role}`, {
    method: "PUT",
    headers: { ...OPERATOR, "content-type": "application/json" },
    body: JSON.stringify({ rules }),
  });
}

function as(...roles: string[]) {
  return { authorization: `Bearer ${makeToken({ scope: "", roles })}` };
}

const NOTES = [{ topics: "notes.#", allow: ["publish", "subscribe"] }];
const everything = {
  authorization: `Bearer ${makeToken({ scope: "pulse:publish pulse:subscribe pulse:manage" })}`,
};

test("a role's rules give rights for their topics, and for no others", async (t) => {
  const pulse = await start(t);
  assert.equal((await setRules(pulse, "app-notes", NOTES)).status, 200);
  const app = as("app-notes");
  const publish = (topic: string, headers: Record<string, string>) =>
    pulse.post("/api/v1/publish", { topic, payload: "x" }, headers);
  for (const topic of ["notes", "notes.new", "notes.a.b"])
    assert.equal((await publish(topic, app)).status, 200, topic);
  for (const topic of ["other", "notesy", "a.notes"])
    assert.equal((await publish(topic, app)).status, 403, topic);
  assert.equal((await publish("notes.new", as())).status, 403, "no role");
  assert.equal((await publish("notes.new", as("app-other"))).status, 403, "another role");
  const batch = { messages: ["notes.new", "other"].map((topic) => ({ topic, payload: "x" })) };
  assert.equal((await pulse.post("/api/v1/publish/batch", batch, app)).status, 403);

  await publish("secret", everything);
  const get = async (path: string) => (await pulse.get(path, { headers: app })).status;
  assert.equal(await get("/api/v1/tail?topic=notes.new"), 200);
  assert.equal(await get("/api/v1/tail?topic=secret"), 403);
  assert.equal(await get("/api/v1/tail?topic=missing"), 403, "existence is not revealed");
  assert.equal(await get("/api/v1/topics/secret"), 403);
  assert.equal(await get("/api/v1/topics/notes"), 200);
  assert.equal(await get("/api/v1/subscribe/secret"), 403);
  assert.equal(
    (await pulse.get("/api/v1/topics/notes", { method: "DELETE", headers: app })).status,
    403,
    "manage is not among the rights",
  );
  const { body } = await pulse.get("/api/v1/topics", { headers: app });
  assert.deepEqual(body.topics.map(({ name }: { name: string }) => name).sort(), [
    "notes",
    "notes.a.b",
    "notes.new",
  ]);
});

test("a pattern subscribes to the permitted topics only", async (t) => {
  const pulse = await start(t);
  await setRules(pulse, "app-notes", NOTES);
  const events = await EventReader.open(`${pulse.url}/api/v1/subscribe/%23`, as("app-notes"));
  for (const topic of ["secret", "notes.a"])
    await pulse.post("/api/v1/publish", { topic, payload: topic }, everything);
  const [first] = await events.wait(1);
  assert.equal(first!.data["payload"], "notes.a");
  events.close();
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/secret`, {
    headers: as("app-notes"),
  });
  const [error] = (await once(socket, "error")) as [Error];
  assert.match(error.message, /403/);
});

test("a removed rule ends the subscriptions that it allowed, and no others", async (t) => {
  const pulse = await start(t);
  await setRules(pulse, "app-notes", NOTES);
  await setRules(pulse, "app-tasks", [{ topics: "tasks", allow: ["subscribe"] }]);
  const both = as("app-notes", "app-tasks");
  const open = (path: string, headers = both) =>
    EventReader.open(`${pulse.url}/api/v1/subscribe/${path}`, headers);
  for (const topic of ["notes.a", "tasks"])
    await pulse.post("/api/v1/publish", { topic, payload: topic }, everything);
  const lost = [await open("notes.a"), await open("notes.a?group=g"), await open("%23")];
  const kept = [await open("tasks"), await open("notes.a", everything)];
  const socket = new WebSocket(`${pulse.url.replace("http", "ws")}/ws/subscribe/notes.a`, {
    headers: both,
  });
  await once(socket, "open");
  const closed = once(socket, "close");
  const removed = { method: "DELETE", headers: OPERATOR };
  assert.equal((await pulse.get(`${RULES}/app-notes`, removed)).status, 204);
  const [code, reason] = (await closed) as [number, Buffer];
  assert.deepEqual([code, String(reason)], [1008, "the right to subscribe was withdrawn"]);
  for (const events of lost) {
    const [event] = await events.wait(1);
    assert.equal(event!.data["reason"], "the right to subscribe was withdrawn");
  }
  for (const topic of ["notes.a", "tasks"])
    await pulse.post("/api/v1/publish", { topic, payload: "later" }, everything);
  for (const events of kept) {
    const [event] = await events.wait(1);
    assert.equal(event!.data["payload"], "later");
    events.close();
  }
  assert.equal((await open("notes.a")).status, 403);
});

test("Kafka clients see, read and write the permitted topics only", async (t) => {
  const pulse = await start(t);
  await setRules(pulse, "app-notes", NOTES);
  for (const topic of ["secret", "notes.a"])
    await pulse.post("/api/v1/publish", { topic, payload: topic }, everything);
  const password = makeToken({ scope: "", roles: ["app-notes"] });
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${pulse.kafkaPort}`],
    logLevel: logLevel.NOTHING,
    sasl: { mechanism: "plain", username: "notes", password },
    retry: { retries: 0 },
  });
  const admin = kafka.admin();
  await admin.connect();
  assert.deepEqual(await admin.listTopics(), ["notes.a"]);
  await assert.rejects(admin.fetchTopicMetadata({ topics: ["secret"] }), /[Aa]uthoriz/);
  await assert.rejects(
    admin.createTopics({ topics: [{ topic: "notes.mine" }] }),
    ({ errors }: { errors: { type: string }[] }) =>
      errors[0]?.type === "TOPIC_AUTHORIZATION_FAILED",
  );
  await admin.disconnect();
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic: "notes.a", messages: [{ value: "second" }] });
  await assert.rejects(
    producer.send({ topic: "secret", messages: [{ value: "x" }] }),
    /[Aa]uthoriz/,
  );
  await producer.disconnect();
  const tail = await pulse.get("/api/v1/tail?topic=notes.a", { headers: everything });
  assert.equal(tail.body.count, 2);
  const stranger = new Kafka({
    brokers: [`127.0.0.1:${pulse.kafkaPort}`],
    logLevel: logLevel.NOTHING,
    sasl: { mechanism: "plain", username: "x", password: makeToken({ scope: "", roles: ["b"] }) },
    retry: { retries: 0 },
  });
  await assert.rejects(stranger.admin().connect(), /[Aa]uthentication|SASL/);
});

test("rules are the operator's, apply at once, survive a restart and are validated", async (t) => {
  const pulse = await start(t);
  const put = { method: "PUT", headers: everything, body: "{}" };
  assert.equal((await pulse.get(`${RULES}/app`, put)).status, 403, "not even with pulse:manage");
  for (const topics of ["a*b", "a.+", ""]) {
    const answer = await setRules(pulse, "app", [{ topics, allow: ["publish"] }]);
    assert.equal(answer.status, 400, topics);
  }
  assert.equal((await setRules(pulse, "app", [{ topics: "a", allow: ["fly"] }])).status, 400);
  await setRules(pulse, "app", [{ topics: "a", allow: ["publish"] }]);
  const publish = async () =>
    (await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, as("app"))).status;
  assert.equal(await publish(), 200);
  await pulse.kill();
  await pulse.start();
  assert.equal(await publish(), 200);
  const { body } = await pulse.get(RULES, { headers: OPERATOR });
  assert.deepEqual(body.roles, [{ role: "app", rules: [{ topics: "a", allow: ["publish"] }] }]);
  const gone = { method: "DELETE", headers: OPERATOR };
  assert.equal((await pulse.get(`${RULES}/app`, gone)).status, 204);
  assert.equal(await publish(), 403);
  assert.equal((await pulse.get(`${RULES}/app`, gone)).status, 404);
});
