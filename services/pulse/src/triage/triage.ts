// Suggests what to do about the dead letters of a topic, by trying it on some of them.
import { createRetryLaterError } from "@platform/kernel/errors";
import { z } from "zod";
import type { Activity } from "../activity/activity.ts";
import { conversionsSchema, type LetterChange } from "../deadletter/convert.ts";
import {
  type DeadLetterQueue,
  type LetterCluster,
  readPayload,
} from "../deadletter/dead-letter-queue.ts";
import type { Json } from "../deadletter/json-patch.ts";
import { EXPIRED_REASON } from "../dispatch/expiry.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Subscriptions } from "../dispatch/subscription.ts";
import type { Schemas } from "../schema/schemas.ts";
import type { Offsets } from "../store/offsets.ts";
import { readLatest } from "../store/read-latest.ts";
import type { Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topic } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";
import {
  type Evidence,
  LetterTrial,
  toConfidence,
  type TrialResult,
  type TriedLetter,
} from "./letter-trial.ts";
import { findRepair, findStrictKeyword } from "./schema-repair.ts";

const LETTERS_MAX = 10_000;
/** The newest letters of a cluster that are tried, and their bytes. */
const TRIED_MAX = 200;
const TRIED_BYTES_MAX = 8 * 1024 * 1024;
const TIME_MS = 2_000;
const ACCEPTED_MAX = 200;
/** The shortest time to live that is suggested. */
const TTL_MS_MIN = 60_000;
const TRANSFORM_FAILED = "transform failed: ";
const NOT_ACKNOWLEDGED = /^not acknowledged by the group ("(?:[^"\\]|\\.)*") in/;

/** A suggestion for one cause, for the API. */
export const suggestionAnswer = z
  .object({
    cluster: z.string().describe("`cause` of the letters."),
    count: z.int(),
    kind: z.enum(["ttl", "schema", "transform", "deliveries", "other"]),
    cause: z.string(),
    action: z.enum([
      "requeue",
      "requeue_changed",
      "raise_ttl",
      "fix_transform",
      "fix_consumer",
      "change_schema",
      "discard",
    ]),
    confidence: z
      .number()
      .describe("(pass + 1) / (tried + 2); of `discard` the share of failures."),
    evidence: z.object({
      tried: z.int(),
      pass: z.int(),
      fail: z.int(),
      examples: z.array(z.object({ message_id: z.string(), result: z.string() })),
    }),
    patch: z
      .array(
        z.object({
          op: z.string(),
          path: z.string(),
          from: z.string().optional(),
          value: z.unknown().optional(),
        }),
      )
      .exactOptional()
      .describe("JSON Patch (RFC 6902)."),
    convert: conversionsSchema.exactOptional(),
    request: z
      .object({ method: z.string(), path: z.string(), body: z.record(z.string(), z.unknown()) })
      .exactOptional()
      .describe("The request that does it."),
  })
  .meta({ id: "TriageSuggestion" });
type Suggestion = z.infer<typeof suggestionAnswer>;
type Advice = Omit<Suggestion, "cluster" | "count">;

/** Options of {@link Triage}. */
export interface TriageOptions {
  readonly store: Store;
  readonly deadLetterQueue: DeadLetterQueue<unknown>;
  readonly schemas: Schemas;
  readonly transforms: Transforms;
  readonly offsets: Offsets;
  readonly groups: SharedSubscriptions;
  readonly subscriptions: Subscriptions;
  readonly activity: Activity;
}

/** A cluster with what its letters do today. */
interface TriedCluster {
  readonly topic: Topic;
  readonly cluster: LetterCluster;
  readonly letters: readonly TriedLetter[];
  readonly trial: LetterTrial;
  readonly results: readonly TrialResult[];
  readonly evidence: Evidence;
}

/** Tries dead letters. Changes nothing. */
export class Triage {
  readonly #options: TriageOptions;
  readonly #busy = new Set<Tenant>();

  constructor(options: TriageOptions) {
    this.#options = options;
  }

  /** Suggestions, most frequent cause first. Rejects with `too_many_requests` while another one of the tenant runs. */
  async suggest(topic: Topic) {
    const { tenant } = topic;
    if (this.#busy.has(tenant)) {
      throw createRetryLaterError(
        "too_many_requests",
        "Another triage of this tenant is running.",
        2,
      );
    }
    this.#busy.add(tenant);
    try {
      return await this.#suggestAll(topic);
    } finally {
      this.#busy.delete(tenant);
    }
  }

  async #suggestAll(topic: Topic) {
    const { deadLetterQueue, schemas, transforms } = this.#options;
    const counts = await deadLetterQueue.cluster(topic, LETTERS_MAX, TRIED_MAX);
    const run = transforms.has(topic) ? await transforms.prepareTrial(topic, undefined) : undefined;
    const trial = new LetterTrial(schemas.find(topic), run, performance.now() + TIME_MS);
    const suggestions: Suggestion[] = [];
    for (const cluster of counts.clusters) {
      const letters = await this.#readNewest(topic, cluster);
      const { results, evidence } = await trial.runAll(letters);
      const advice = await this.#advise({ topic, cluster, letters, trial, results, evidence });
      suggestions.push({ cluster: cluster.reason, count: cluster.count, ...advice });
    }
    const { dlq_topic, total, is_complete } = counts;
    return { dlq_topic, total, is_complete, suggestions };
  }

  async #readNewest(topic: Topic, { offsets }: LetterCluster): Promise<TriedLetter[]> {
    const letters: TriedLetter[] = [];
    let bytes = 0;
    for (const offset of offsets.slice(-TRIED_MAX).reverse()) {
      const envelope = await this.#options.deadLetterQueue.at(topic, offset);
      if (envelope === undefined) continue;
      const payload = readPayload(envelope);
      bytes += payload.length;
      if (bytes > TRIED_BYTES_MAX && letters.length > 0) break;
      letters.push({
        messageId: envelope.message_id,
        payload,
        reason: envelope.failure_reason,
      });
    }
    return letters;
  }

  async #advise(tried: TriedCluster): Promise<Advice> {
    const { cluster, letters, results } = tried;
    const broken = results.filter(({ kind }) => kind === "schema").length;
    if (broken > 0 && broken * 2 >= results.length) {
      const advice = await this.#adviseOnSchema(tried);
      if (advice !== undefined) return advice;
      return adviseOnRest(tried, "schema");
    }
    if (cluster.reason.startsWith(TRANSFORM_FAILED)) return adviseOnTransform(tried);
    const [, group] = NOT_ACKNOWLEDGED.exec(letters[0]?.reason ?? "") ?? [];
    if (group !== undefined) return this.#adviseOnDeliveries(tried, group);
    if (cluster.reason === EXPIRED_REASON) return this.#adviseOnTtl(tried);
    return adviseOnRest(tried, "other");
  }

  async #adviseOnSchema(tried: TriedCluster): Promise<Advice | undefined> {
    const { topic, letters, trial, evidence } = tried;
    const latest = await readLatest(this.#options.store, topic.stored.partitions, ACCEPTED_MAX);
    const accepted = latest.flatMap(({ record }) => record.value ?? []);
    const repair = await findRepair(trial, letters, accepted);
    const repaired = repair && (await trial.runAll(letters, repair)).evidence;
    if (repair !== undefined && repaired !== undefined && repaired.pass > evidence.pass) {
      const { causes, convert, patch } = repair;
      const change = { ...(convert && { convert }), ...(patch && { patch }) };
      return {
        kind: "schema",
        cause: `${causes.join("; ")}.`,
        action: "requeue_changed",
        confidence: toConfidence(repaired),
        evidence: repaired,
        ...change,
        request: requeue(tried, change),
      };
    }
    const strict = await findStrictKeyword(trial, letters);
    if (strict === undefined) return undefined;
    const loosened = (await strict.trial.runAll(letters)).evidence;
    return {
      kind: "schema",
      cause: `The keyword at ${strict.pointer} of the schema refuses the letters.`,
      action: "change_schema",
      confidence: toConfidence(loosened),
      evidence: loosened,
      request: {
        method: "POST",
        path: `/api/v1/topics/${encodeURIComponent(topic.name)}/schema`,
        body: strict.document as Record<string, Json>,
      },
    };
  }

  async #adviseOnDeliveries(tried: TriedCluster, quoted: string): Promise<Advice> {
    const { topic, cluster, evidence } = tried;
    const group = JSON.parse(quoted) as string;
    // Times of letters are whole seconds.
    const hasGoneOn = await this.#hasGoneOn(topic, group, (cluster.last_seen + 1) * 1_000);
    const common = { kind: "deliveries" as const, confidence: toConfidence(evidence), evidence };
    if (!hasGoneOn) {
      const cause = `The group ${group} did not acknowledge them, and nothing later either.`;
      return { ...common, cause, action: "fix_consumer" };
    }
    const cause = `The group ${group} did not acknowledge them, but later messages.`;
    return { ...common, cause, action: "requeue", request: requeue(tried) };
  }

  /** True if a group is past a message that was published after a time, epoch ms. */
  async #hasGoneOn(topic: Topic, group: string, afterMs: number): Promise<boolean> {
    const { store, offsets } = this.#options;
    for (const partition of topic.stored.partitions) {
      const committed = offsets.find(topic.tenant, group, topic, partition.index);
      const found = await store.log.findTimestamp(partition, afterMs);
      if (found !== undefined && (committed?.offset ?? 0) > found.offset) return true;
    }
    return false;
  }

  #adviseOnTtl(tried: TriedCluster): Advice {
    const { topic, evidence } = tried;
    const { subscriptions, groups, activity } = this.#options;
    const common = { kind: "ttl" as const, confidence: toConfidence(evidence), evidence };
    if (subscriptions.countOf(topic) + groups.memberCountOf(topic) === 0) {
      const cause = "They expired, and the topic has no subscriber.";
      return { ...common, cause, action: "fix_consumer" };
    }
    const ttlMs = Math.max(TTL_MS_MIN, 2 * activity.longestLagMs(topic));
    const cause = `They expired before a subscriber came to them; ttl_ms of ${ttlMs} is twice the longest lag.`;
    return { ...common, cause, action: "raise_ttl" };
  }
}

function adviseOnTransform(tried: TriedCluster): Advice {
  const { results, evidence } = tried;
  const failed = results.find((result) => result.kind === "transform");
  const common = { kind: "transform" as const, confidence: toConfidence(evidence), evidence };
  if (evidence.pass * 2 >= evidence.tried || failed === undefined) {
    const cause = "The transform of today accepts them.";
    return { ...common, cause, action: "requeue", request: requeue(tried) };
  }
  const reason = failed.reason.slice(TRANSFORM_FAILED.length);
  return { ...common, cause: `The transform still fails: ${reason}`, action: "fix_transform" };
}

function adviseOnRest(tried: TriedCluster, kind: "schema" | "other"): Advice {
  const { topic, cluster, evidence } = tried;
  if (evidence.pass * 2 > evidence.tried) {
    const cause = "The rules of today accept them.";
    return {
      kind,
      cause,
      action: "requeue",
      confidence: toConfidence(evidence),
      evidence,
      request: requeue(tried),
    };
  }
  const share = evidence.tried === 0 ? 0 : evidence.fail / evidence.tried;
  return {
    kind,
    cause: "They fail today as well, and no change that was tried repairs them.",
    action: "discard",
    confidence: Math.round(share * 1_000) / 1_000,
    evidence,
    request: {
      method: "DELETE",
      path: "/api/v1/dlq",
      body: { topic: topic.name, cause: cluster.reason },
    },
  };
}

function requeue({ topic, cluster }: TriedCluster, change: LetterChange = {}) {
  const body = { topic: topic.name, cause: cluster.reason, ...change };
  return {
    method: "POST",
    path: "/api/v1/dlq/requeue",
    body: JSON.parse(JSON.stringify(body)) as Record<string, Json>,
  };
}
