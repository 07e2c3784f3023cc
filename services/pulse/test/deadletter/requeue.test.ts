// Dead letters that are requeued and discarded at the same time, and a broker that is killed meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import type { RunningPulse } from "../fixture/running-pulse.ts";

const TOPICS = ["orders", "mails", "bills"];
/** Letters of each topic. */
const EACH = 70;
const WAIT_MS = 30_000;

interface Letter {
  topic: string;
  id: string;
}

const UNLIMITED = { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" };

/** Fills one dead letter topic with dead letters of several topics. */
async function bury(pulse: RunningPulse): Promise<Letter[]> {
  for (const topic of TOPICS) {
    const path = `/api/v1/topics/${topic}/dlq`;
    assert.equal((await pulse.post(path, { dlq_topic: "dead" })).status, 200);
  }
  const letters = TOPICS.flatMap((topic) =>
    Array.from({ length: EACH }, (_, index) => ({ topic, id: `${topic}-${index}` })),
  );
  // Letters of the topics are mixed.
  const messages = letters
    .toSorted((one, other) => one.id.slice(-2).localeCompare(other.id.slice(-2)))
    .map(({ topic, id }) => ({ topic, message_id: id, payload: id, ttl_ms: 1 }));
  assert.equal((await pulse.post("/api/v1/publish/batch", { messages })).status, 200);
  const endsMs = performance.now() + WAIT_MS;
  while ((await list(pulse)).length < letters.length) {
    assert.ok(performance.now() < endsMs, "the messages have not expired");
    await sleep(50);
  }
  return letters;
}

async function list(pulse: RunningPulse): Promise<string[]> {
  const ids: string[] = [];
  for (const topic of TOPICS) {
    const { body } = await pulse.get(`/api/v1/topics/${topic}/dlq?limit=1000`);
    ids.push(...body.messages.map((letter: { message_id: string }) => letter.message_id));
  }
  return ids;
}

/** The messages that follow the expired ones. */
async function listRequeued(pulse: RunningPulse): Promise<string[]> {
  const ids: string[] = [];
  for (const topic of TOPICS) {
    const { body } = await pulse.get(`/api/v1/tail?topic=${topic}&n=1000`);
    for (const { message_id, offset } of body.messages as {
      message_id: string;
      offset: number;
    }[]) {
      if (offset >= EACH) ids.push(message_id);
    }
  }
  return ids;
}

function requeue(pulse: RunningPulse, { topic, id }: Letter) {
  return pulse.post(`/api/v1/topics/${topic}/dlq/requeue`, { message_id: id });
}

test("letters that are requeued in parallel stay requeued, once each, if the broker is killed", async (t) => {
  const pulse = await startPulseProcess(t, UNLIMITED);
  const letters = await bury(pulse);
  const acknowledged = new Set<string>();
  const killed = Promise.withResolvers<void>();
  const requests = letters.map(async (letter) => {
    const { status } = await requeue(pulse, letter);
    assert.equal(status, 200);
    acknowledged.add(letter.id);
    if (acknowledged.size === letters.length / 2) killed.resolve(pulse.kill());
  });
  await Promise.allSettled(requests);
  await killed.promise;
  await pulse.start();
  const left = await list(pulse);
  const requeued = await listRequeued(pulse);
  assert.ok(acknowledged.size >= letters.length / 2);
  assert.equal(new Set(requeued).size, requeued.length, "none is published twice");
  for (const { id } of letters) {
    const isLeft = left.includes(id);
    assert.equal(requeued.includes(id), !isLeft, `${id} is a letter or a message`);
    assert.ok(!acknowledged.has(id) || !isLeft, `${id} was acknowledged`);
  }
});

test("requeues and discards in parallel: a letter is done once, the others stay", async (t) => {
  const pulse = await startPulseHere(t, UNLIMITED);
  const letters = await bury(pulse);
  const statuses = await Promise.all(
    letters.slice(20).flatMap((letter, index) => {
      if (index % 3 === 0) {
        const { topic, id } = letter;
        const init = { method: "DELETE", headers: { "content-type": "application/json" } };
        const body = JSON.stringify({ topic, ids: [id] });
        return [pulse.get("/api/v1/dlq", { ...init, body }).then(({ status }) => status)];
      }
      return [requeue(pulse, letter), requeue(pulse, letter)].map((sent) =>
        sent.then(({ status }) => status),
      );
    }),
  );
  assert.ok(statuses.every((status) => [200, 404, 409].includes(status)));
  const before = await list(pulse);
  assert.deepEqual(
    before.toSorted(),
    letters
      .slice(0, 20)
      .map(({ id }) => id)
      .toSorted(),
  );
  await pulse.kill();
  await pulse.start();
  assert.deepEqual(await list(pulse), before);
  const requeued = await listRequeued(pulse);
  assert.equal(new Set(requeued).size, requeued.length);
});
