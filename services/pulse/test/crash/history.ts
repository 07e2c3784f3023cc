// Records the calls and answers of clients, and compares them with the contents of a broker after a crash.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Found, Placed, Planned, Target } from "./target.ts";

/** One call: `placed` once it was acknowledged. */
export interface Call {
  lane: number;
  messages: Planned[];
  placed: Placed[] | undefined;
}

/** One commit of an offset. */
export interface Commit {
  group: string;
  topic: string;
  offset: number;
  isAcknowledged: boolean;
}

/** A snapshot of a history. */
export interface Moment {
  topics: string[];
  calls: Call[];
  commits: Commit[];
}

/** Notes everything in call order. */
export class History {
  readonly topics: string[] = [];
  readonly calls: Call[] = [];
  readonly commits: Commit[] = [];

  /** A snapshot; later acknowledgements do not change it. */
  moment(): Moment {
    return {
      topics: Array.from(this.topics),
      calls: this.calls.map((call) => ({ ...call })),
      commits: this.commits.map((commit) => ({ ...commit })),
    };
  }
}

/** Time limit for delayed messages and dead letters after a start. */
const settleMs = 30_000;

/**
 * Judges a broker that was started again, past the due times of all delayed and mortal messages. Nothing acknowledged
 * is missing or moved; calls are whole or absent; each lane's order holds; nothing is there twice; what has a message
 * id or a sequence number is taken once however often it is sent; what expired has one dead letter; committed offsets
 * did not go back.
 */
export async function judge(target: Target, moment: Moment): Promise<void> {
  const found = await readSettled(target, moment);
  const known = new Set(moment.calls.flatMap(({ messages }) => messages.map((m) => m.payload)));
  for (const payload of found.keys()) assert.ok(known.has(payload), `${payload} was published`);
  for (const call of moment.calls) judgeCall(call, found);
  judgeOrder(moment);
  await judgeRepetition(target, moment);
  await judgeDeadLetters(target, moment);
  await judgeCommits(target, moment);
}

async function readAll(target: Target, topics: readonly string[]): Promise<Map<string, Found[]>> {
  const found = new Map<string, Found[]>();
  for (const topic of topics) {
    for (const message of await target.readAll(topic)) {
      found.set(message.payload, [...(found.get(message.payload) ?? []), message]);
    }
  }
  return found;
}

// Delayed messages come by themselves; whoever was promised one may wait for it.
async function readSettled(target: Target, moment: Moment): Promise<Map<string, Found[]>> {
  const promised = moment.calls.flatMap(({ messages, placed }) =>
    placed === undefined ? [] : messages.filter(({ delay_ms }) => delay_ms !== undefined),
  );
  const until = performance.now() + settleMs;
  for (;;) {
    const found = await readAll(target, moment.topics);
    const missing = promised.find(({ payload }) => !found.has(payload));
    if (missing === undefined) return found;
    assert.ok(performance.now() < until, `the delayed message ${missing.payload} never came`);
    await sleep(15);
  }
}

function judgeCall({ messages, placed }: Call, found: ReadonlyMap<string, Found[]>): void {
  let present = 0;
  let sure = 0;
  for (const [index, message] of messages.entries()) {
    const copies = found.get(message.payload) ?? [];
    assert.ok(copies.length <= 1, `${message.payload} is there ${copies.length} times`);
    // One that is under way to its topic says nothing about the call.
    if (message.delay_ms === undefined) {
      sure++;
      present += copies.length;
    }
    const place = placed?.[index];
    if (place === undefined) continue;
    assert.equal(copies.length, 1, `${message.payload} was acknowledged`);
    if (place.offset === undefined) continue;
    assert.deepEqual(
      [copies[0]!.partition, copies[0]!.offset],
      [place.partition, place.offset],
      `${message.payload} is where it was said to be`,
    );
  }
  assert.ok(present === 0 || present === sure, `${messages[0]!.payload}… is whole or absent`);
}

// A lane sends one call after another, so what it put into a partition has ascending offsets.
function judgeOrder({ calls }: Moment): void {
  const last = new Map<string, number>();
  for (const { lane, messages, placed } of calls) {
    for (const [index, { topic }] of messages.entries()) {
      const { partition, offset } = placed?.[index] ?? {};
      if (offset === undefined) continue;
      const place = `${lane} ${topic} ${partition}`;
      assert.ok(offset > (last.get(place) ?? -1), `lane ${lane} kept its order in ${topic}`);
      last.set(place, offset);
    }
  }
}

// Clients that do not know what became of a call send it again; so do some that do.
async function judgeRepetition(target: Target, moment: Moment): Promise<void> {
  const again = moment.calls.filter(({ messages }) =>
    messages.some((m) => m.message_id !== undefined || m.producer_id !== undefined),
  );
  for (const { messages, placed } of again) {
    const [answer] = await target.publish(messages);
    if (placed !== undefined) {
      assert.equal(answer!.isDuplicate, true, `${messages[0]!.payload} was taken before`);
    }
  }
  const found = await readAll(target, moment.topics);
  for (const { messages } of again) {
    const { payload } = messages[0]!;
    assert.equal(found.get(payload)?.length ?? 0, 1, `${payload} is there once after a repetition`);
  }
}

async function judgeDeadLetters(target: Target, moment: Moment): Promise<void> {
  const found = await readAll(target, moment.topics);
  const mortal = moment.calls
    .flatMap(({ messages }) => messages)
    .filter(({ ttl_ms, payload }) => ttl_ms !== undefined && found.has(payload));
  const until = performance.now() + settleMs;
  for (const topic of moment.topics) {
    const expected = mortal.filter((message) => message.topic === topic).map((m) => m.payload);
    let letters = await target.readDeadLetters(topic);
    while (letters.length < expected.length && performance.now() < until) {
      await sleep(15);
      letters = await target.readDeadLetters(topic);
    }
    assert.deepEqual(letters.toSorted(), expected.toSorted(), `dead letters of ${topic}`);
  }
}

async function judgeCommits(target: Target, { commits }: Moment): Promise<void> {
  const groups = new Map(commits.map((commit) => [`${commit.group} ${commit.topic}`, commit]));
  for (const { group, topic } of groups.values()) {
    const own = commits.filter((commit) => commit.group === group && commit.topic === topic);
    const promised = own.findLast(({ isAcknowledged }) => isAcknowledged)?.offset ?? -1;
    const committed = (await target.committed(group, topic)) ?? -1;
    assert.ok(committed >= promised, `${group} in ${topic} is at ${committed} >= ${promised}`);
    assert.ok(
      committed === -1 || own.some(({ offset }) => offset === committed),
      `${group} in ${topic} is at an offset that was committed`,
    );
  }
}
