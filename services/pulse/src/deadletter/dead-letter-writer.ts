// The dead letter topics of all topics, and the format of a dead letter.
import { z } from "zod";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { RecordHeader } from "@platform/log/batch";
import { readText, toRecord } from "../message/message.ts";
import type { Tenant } from "../topic/name.ts";
import { defaultDeadLetterName, type Topic, type Topics } from "../topic/topics.ts";

/** Longest payload stored as text, in bytes of JSON. */
const TEXT_BYTES_MAX = 12 * 1024 * 1024;

/** A message that could not be delivered or accepted. */
export interface DeadLetter {
  sourceTopic: string;
  id: string;
  key: Buffer | null;
  /** The published payload. */
  payload: Buffer;
  headers: readonly RecordHeader[];
  priority: number;
  retryCount: number;
  reason: string;
  /** Epoch milliseconds. */
  at: number;
}

/** A dead letter as it is stored, for the API. */
export const deadLetter = z.object({
  message_id: z.string(),
  source_topic: z.string(),
  original_payload: z.string(),
  encoding: z.literal("base64").exactOptional(),
  failure_reason: z.string(),
  timestamp: z.number().describe("Epoch seconds."),
  retry_count: z.int(),
});

/** The payload of a dead letter; binary payloads are in base64. */
export type Envelope = z.infer<typeof deadLetter>;

/** Registered names of dead letter topics, durable; `<topic>.dlq` by default. */
export class DeadLetterWriter {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #topics: Topics;
  readonly #names = new Map<string, string>();

  constructor(store: Store, state: StateTable, topics: Topics) {
    this.#store = store;
    this.#state = state;
    this.#topics = topics;
    for (const { key, value } of state.take("dlq")) {
      const id = String(key[1]);
      if (topics.findByHexId(id) !== undefined) this.#names.set(id, String(readJson(value)));
    }
    topics.watch({ deleted: (topic) => void this.#forget(topic).catch(() => undefined) });
  }

  nameFor(topic: Topic): string {
    return this.#names.get(topic.stored.id.toString("hex")) ?? defaultDeadLetterName(topic.name);
  }

  /** True if a topic of the tenant uses this name for its dead letters. */
  isDeadLetterName(tenant: Tenant, name: string): boolean {
    if (name.endsWith(".dlq")) return true;
    if (this.#names.size === 0) return false;
    for (const [id, registered] of this.#names) {
      if (registered === name && this.#topics.findByHexId(id)?.tenant === tenant) return true;
    }
    return false;
  }

  /** Registers a name and creates the topic, durably. */
  async register(topic: Topic, name: string): Promise<Topic> {
    const deadLetterTopic = await this.#topics.ensure(topic.tenant, name);
    const id = topic.stored.id.toString("hex");
    await this.#store.append([this.#state.toPendingJson(["dlq", id], name)]);
    this.#names.set(id, name);
    return deadLetterTopic;
  }

  /** The dead letter topic, created if needed. */
  ensure(topic: Topic): Promise<Topic> {
    return this.#topics.ensure(topic.tenant, this.nameFor(topic));
  }

  /** The record of a dead letter; append it in one entry with the acknowledgement of the source. */
  toPending(deadLetterTopic: Topic, letter: DeadLetter): PendingRecord {
    const envelope: Envelope = {
      message_id: letter.id,
      source_topic: letter.sourceTopic,
      ...encodePayload(letter.payload),
      failure_reason: letter.reason,
      timestamp: Math.floor(letter.at / 1000),
      retry_count: letter.retryCount,
    };
    const { key, headers, id, priority, retryCount } = letter;
    const record = toRecord(
      { key, payload: Buffer.from(JSON.stringify(envelope)), headers },
      { id, priority, expiresAt: undefined, retryCount },
      letter.at,
    );
    return { partition: deadLetterTopic.stored.partitions[0]!, record };
  }

  async #forget(topic: Topic): Promise<void> {
    const id = topic.stored.id.toString("hex");
    if (!this.#names.delete(id)) return;
    await this.#store.append([this.#state.toPending(["dlq", id], null)]);
  }
}

// Control characters grow sixfold in JSON, and could exceed the size limit of the log.
function encodePayload(payload: Buffer): Pick<Envelope, "original_payload" | "encoding"> {
  const text = readText(payload);
  const isText =
    text !== undefined &&
    (text.length * 6 <= TEXT_BYTES_MAX ||
      Buffer.byteLength(JSON.stringify(text)) <= TEXT_BYTES_MAX);
  if (isText) return { original_payload: text };
  return { original_payload: payload.toString("base64"), encoding: "base64" };
}
