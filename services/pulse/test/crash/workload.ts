// A mixed load: clients that publish in every way there is, each one call after another.
import type { Random } from "@platform/log/simulation";
import type { Call, History } from "./history.ts";
import type { Planned, Target } from "./target.ts";

/** Options of a run. */
export interface Load {
  lanes: number;
  steps: number;
  topicPrefix: string;
}

/**
 * Runs the lanes until each has done its steps or the target is gone. Calls whose outcome is not known stay without
 * places; the lane ends there, as a client would that waits for its broker.
 */
export async function runLoad(
  target: Target,
  history: History,
  random: Random,
  { lanes, steps, topicPrefix }: Load,
): Promise<void> {
  const topics = ["a", "b"].map((name) => `${topicPrefix}.${name}`);
  try {
    for (const topic of topics) {
      history.topics.push(topic);
      await target.create(topic);
    }
  } catch {
    return;
  }
  await Promise.all(
    Array.from({ length: lanes }, (_, lane) =>
      runLane(target, history, random, lane, steps, topics),
    ),
  );
}

async function runLane(
  target: Target,
  history: History,
  random: Random,
  lane: number,
  steps: number,
  topics: readonly string[],
): Promise<void> {
  for (let step = 0; step < steps; step++) {
    try {
      if (random.chance(0.08)) await commit(target, history, lane, step, topics[0]!);
      else
        await publish(target, history, lane, plan(random, topics, `${lane}-${step}`, lane, step));
    } catch {
      return;
    }
  }
}

function plan(
  random: Random,
  topics: readonly string[],
  name: string,
  lane: number,
  step: number,
): Planned[] {
  const topic = random.pick(topics);
  const payload = `m${name} `.padEnd(random.pick([8, 40, 400, 3_000]), "x");
  const key = `lane ${lane}`;
  switch (random.below(8)) {
    case 0:
      return [{ topic, payload, key, message_id: `${topics[0]} ${name}` }];
    case 1:
      return [{ topic, payload, key, producer_id: `${topics[0]} ${lane}`, sequence_number: step }];
    case 2:
      return [{ topic, payload, delay_ms: 1 + random.below(60) }];
    case 3:
      return [{ topic, payload, key, ttl_ms: 5 + random.below(40) }];
    case 4:
      return Array.from({ length: 2 + random.below(4) }, (_, at) => ({
        topic: topics[at % topics.length]!,
        payload: `m${name}.${at}`,
        key,
        ...(random.chance(0.2) ? { delay_ms: 1 + random.below(40) } : {}),
      }));
    default:
      return [{ topic, payload, key }];
  }
}

async function publish(
  target: Target,
  history: History,
  lane: number,
  messages: Planned[],
): Promise<void> {
  const call: Call = { lane, messages, placed: undefined };
  history.calls.push(call);
  call.placed = await target.publish(messages);
}

async function commit(
  target: Target,
  history: History,
  lane: number,
  step: number,
  topic: string,
): Promise<void> {
  const noted = { group: `g${lane}`, topic, offset: step, isAcknowledged: false };
  history.commits.push(noted);
  await target.commit(noted.group, topic, step);
  noted.isAcknowledged = true;
}
