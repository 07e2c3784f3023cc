// Unacknowledged messages of a group: back-off, acknowledgement timeout, dead letters.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { waitFor } from "@platform/testing/wait";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";

interface Delivery {
  message_id: string;
  payload: string;
  retry_count?: number;
  atMs: number;
}

/** A member of the group `g` by WebSocket. */
async function join(pulse: PulseHere, topic: string, query = "") {
  const url = `${pulse.url.replace("http", "ws")}/ws/subscribe/${topic}?group=g&ack=manual${query}`;
  const socket = new WebSocket(url);
  const got: Delivery[] = [];
  const errors: string[] = [];
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Delivery & { error?: string };
    if (frame.error === undefined) got.push({ ...frame, atMs: performance.now() });
    else errors.push(frame.error);
  });
  await once(socket, "open");
  return {
    socket,
    got,
    errors,
    send: (answer: Record<string, string>) => socket.send(JSON.stringify(answer)),
    async wait(count: number): Promise<Delivery> {
      await waitFor(() => got.length >= count);
      return got[count - 1]!;
    },
    async leave(): Promise<void> {
      socket.close();
      await once(socket, "close");
    },
  };
}

const readDeadLetters = (pulse: PulseHere, topic: string, count = 1) =>
  waitFor(async () => {
    const { body } = await pulse.get(`/api/v1/topics/${topic}/dlq`);
    return body.total >= count ? body.messages : undefined;
  });

async function readLag(pulse: PulseHere, topic: string): Promise<number> {
  const { body } = await pulse.get("/api/v1/consumers/lag?group=g");
  const row = body.groups.find((one: { topic: string }) => one.topic === topic);
  return row.lag;
}

test("a rejected message is redelivered after a growing back-off, then becomes a dead letter", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_MAX_DELIVERIES: "4",
    PLATFORM_PULSE_NACK_BACKOFF_MS: "100",
    PLATFORM_PULSE_NACK_BACKOFF_MAX_MS: "200",
  });
  const member = await join(pulse, "orders");
  await pulse.publish({ topic: "orders", payload: "poison", message_id: "p", key: "k" });
  for (let count = 1; count <= 4; count++) {
    const { message_id, retry_count } = await member.wait(count);
    assert.equal(retry_count ?? 0, count - 1);
    member.send({ nack: message_id });
  }
  const gaps = member.got.slice(1).map(({ atMs }, at) => atMs - member.got[at]!.atMs);
  for (const [at, least] of [100, 200, 200].entries()) {
    assert.ok(gaps[at]! >= least - 2, `delivery ${at + 2} came after ${gaps[at]} ms`);
  }
  const [letter] = await readDeadLetters(pulse, "orders");
  assert.deepEqual(
    [letter.message_id, letter.original_payload, letter.source_topic, letter.retry_count],
    ["p", "poison", "orders", 3],
  );
  assert.match(letter.failure_reason, /not acknowledged by the group "g" in 4 deliveries/);
  // The group has passed it, others get through, and the counter says so.
  assert.equal(await readLag(pulse, "orders"), 0);
  await pulse.publish({ topic: "orders", payload: "fine" });
  assert.equal((await member.wait(5)).payload, "fine");
  assert.match(
    String((await pulse.get("/metrics")).body),
    /^platform_pulse_dlq_messages_total 1$/m,
  );
  // Sent back, it may fail as often again, and does not forget what was before.
  const requeue = { message_id: "p" };
  assert.equal((await pulse.post("/api/v1/topics/orders/dlq/requeue", requeue)).status, 200);
  assert.equal((await member.wait(6)).retry_count, 4);
  member.socket.close();
});

test("ten deliveries are the default, 0 is unlimited", async (t) => {
  const quick = { PLATFORM_PULSE_NACK_BACKOFF_MS: "1", PLATFORM_PULSE_NACK_BACKOFF_MAX_MS: "1" };
  const bounded = await startPulseHere(t, quick);
  const unbounded = await startPulseHere(t, { ...quick, PLATFORM_PULSE_MAX_DELIVERIES: "0" });
  for (const pulse of [bounded, unbounded]) {
    const member = await join(pulse, "a");
    member.socket.on("message", () => member.send({ nack: member.got.at(-1)!.message_id }));
    await pulse.publish({ topic: "a", payload: "x" });
    if (pulse === bounded) {
      const [letter] = await readDeadLetters(pulse, "a");
      assert.deepEqual([member.got.length, letter.retry_count], [10, 9]);
    } else await member.wait(12);
    member.socket.close();
  }
});

test("a message that is not acknowledged in time goes to another member, an acknowledged one does not", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_ACK_WAIT_MS: "300" });
  const silent = await join(pulse, "slow");
  await pulse.publish({ topic: "slow", payload: "done" });
  silent.send({ ack: (await silent.wait(1)).message_id });
  await pulse.publish({ topic: "slow", payload: "stuck" });
  const first = await silent.wait(2);
  // Its own time to wait: long enough not to matter.
  const other = await join(pulse, "slow", "&ack_wait_ms=60000");
  const again = await other.wait(1);
  assert.deepEqual([again.payload, again.retry_count], ["stuck", 1]);
  assert.ok(again.atMs - first.atMs >= 298, `after ${again.atMs - first.atMs} ms`);
  silent.send({ ack: first.message_id });
  await waitFor(() => silent.errors[0]);
  other.send({ ack: again.message_id });
  await waitFor(async () => (await readLag(pulse, "slow")) === 0);
  assert.deepEqual([silent.got.length, other.got.length], [2, 1]);
  for (const { socket } of [silent, other]) socket.close();
  for (const bad of ["ack_wait_ms=99", "ack_wait_ms=43200001", "ack_wait_ms=x"]) {
    const { status } = await pulse.get(`/api/v1/subscribe/slow?group=g&ack=manual&${bad}`);
    assert.equal(status, 400, bad);
  }
  const auto = await pulse.get("/api/v1/subscribe/slow?group=g&ack_wait_ms=1000");
  assert.equal(auto.status, 400);
});

test("an SSE member acknowledges and rejects by message_id", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_NACK_BACKOFF_MS: "50" });
  const member = await EventReader.open(`${pulse.url}/api/v1/subscribe/sse?group=g&ack=manual`);
  await pulse.publish({ topic: "sse", payload: "a", message_id: "one" });
  await pulse.publish({ topic: "sse", payload: "b", message_id: "two" });
  await member.wait(2);
  const answer = (path: string, body: Record<string, string>) =>
    pulse.post(`/api/v1/${path}`, { topic: "sse", group: "g", ...body });
  assert.equal((await answer("ack", { message_id: "one" })).status, 200);
  assert.equal(await readLag(pulse, "sse"), 1, "an acknowledgement counts at once");
  assert.equal((await answer("ack", { message_id: "one" })).status, 404);
  assert.equal((await answer("nack", { message_id: "two" })).status, 200);
  const again = (await member.wait(3))[2]!;
  assert.deepEqual([again.data["payload"], again.data["retry_count"]], ["b", 1]);
  assert.equal((await answer("nack", { id: again.id })).status, 200);
  await member.wait(4);
  assert.equal((await answer("ack", { message_id: "two" })).status, 200);
  assert.equal(await readLag(pulse, "sse"), 0);
  for (const path of ["ack", "nack"]) {
    assert.equal((await answer(path, {})).status, 400);
    assert.equal((await answer(path, { id: "0:0", message_id: "one" })).status, 400);
    assert.equal((await answer(path, { message_id: "never" })).status, 404);
  }
  const { body } = await pulse.get("/api/docs/openapi.json");
  const { properties } =
    body.paths["/api/v1/nack"].post.requestBody.content["application/json"].schema;
  assert.deepEqual(Object.keys(properties), ["topic", "group", "message_id", "id"]);
  member.close();
});

test("failed deliveries are counted across a kill, and a leaving member counts as failed", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_MAX_DELIVERIES: "4",
    PLATFORM_PULSE_NACK_BACKOFF_MS: "1",
  });
  const first = await join(pulse, "a");
  await pulse.publish({ topic: "a", payload: "x", message_id: "m" });
  await first.wait(1);
  await first.leave();
  const second = await join(pulse, "a");
  assert.equal((await second.wait(1)).retry_count, 1);
  // Answered when it is on the disk.
  const nack = { topic: "a", group: "g", message_id: "m" };
  assert.equal((await pulse.post("/api/v1/nack", nack)).status, 200);
  await second.wait(2);
  await pulse.kill();
  await pulse.start();
  const third = await join(pulse, "a");
  assert.equal((await third.wait(1)).retry_count, 2);
  await third.leave();
  const fourth = await join(pulse, "a");
  assert.equal((await fourth.wait(1)).retry_count, 3);
  fourth.send({ nack: "m" });
  const [letter] = await readDeadLetters(pulse, "a");
  assert.equal(letter.retry_count, 3);
  // The dead letter and the group's passing it are one entry: neither comes twice.
  await pulse.kill();
  await pulse.start();
  assert.equal((await pulse.get("/api/v1/topics/a/dlq")).body.total, 1);
  assert.equal(await readLag(pulse, "a"), 0);
});

test("a replay resets failed deliveries", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_MAX_DELIVERIES: "2",
    PLATFORM_PULSE_NACK_BACKOFF_MS: "1",
  });
  const member = await join(pulse, "a");
  await pulse.publish({ topic: "a", payload: "x" });
  member.send({ nack: (await member.wait(1)).message_id });
  assert.equal((await member.wait(2)).retry_count, 1);
  const replay = { topic: "a", start_offset: 0, group_name: "g" };
  assert.equal((await pulse.post("/api/v1/replay", replay)).status, 200);
  const again = await member.wait(3);
  assert.equal(again.retry_count ?? 0, 0);
  member.send({ nack: again.message_id });
  assert.equal((await member.wait(4)).retry_count, 1);
  assert.equal((await pulse.get("/api/v1/topics/a/dlq")).body.total, 0);
  member.socket.close();
});

test("a rejected dead letter stays and creates no further dead letters", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_MAX_DELIVERIES: "1",
    PLATFORM_PULSE_NACK_BACKOFF_MS: "1",
    PLATFORM_PULSE_NACK_BACKOFF_MAX_MS: "1",
  });
  const member = await join(pulse, "a.dlq");
  await pulse.publish({ topic: "a.dlq", payload: "x" });
  for (let count = 1; count <= 3; count++) {
    member.send({ nack: (await member.wait(count)).message_id });
  }
  await member.wait(4);
  const { body } = await pulse.get("/api/v1/topics");
  assert.deepEqual(
    body.topics.map(({ name }: { name: string }) => name),
    ["a.dlq"],
  );
  member.socket.close();
});
