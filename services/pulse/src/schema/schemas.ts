// The durable schemas of topics, and the validation of payloads.
import { PlatformError } from "@platform/kernel/errors";
import { readJson, type StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { compileSchema, explainBreak, type CompiledSchema } from "./schema.ts";

/** Schemas by topic. */
export class Schemas {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #byTopic = new Map<string, CompiledSchema>();

  constructor(store: Store, state: StateTable, topics: Topics) {
    this.#store = store;
    this.#state = state;
    for (const { key, value } of state.take("schema")) {
      const id = String(key[1]);
      if (topics.findByHexId(id) === undefined) continue;
      this.#byTopic.set(id, compileSchema(readJson(value), "stored"));
    }
    topics.watch({ deleted: (topic) => void this.clear(topic).catch(() => undefined) });
  }

  find(topic: Topic): CompiledSchema | undefined {
    return this.#byTopic.get(topic.stored.id.toString("hex"));
  }

  /** Registers a schema durably; with backward `compatibility` a breaking schema is a `conflict`. */
  async register(
    topic: Topic,
    document: unknown,
    compatibility: "backward" | "none",
  ): Promise<CompiledSchema> {
    const schema = compileSchema(document);
    const before = this.find(topic);
    if (compatibility === "backward" && before !== undefined) {
      const reason = explainBreak(before, schema);
      if (reason !== undefined) {
        throw new PlatformError("conflict", `The schema is not backward compatible: ${reason}.`);
      }
    }
    const id = topic.stored.id.toString("hex");
    await this.#store.append([this.#state.toPendingJson(["schema", id], schema.document)]);
    if (topic.stored.live) this.#byTopic.set(id, schema);
    return schema;
  }

  /** Deletes a topic's schema, durably. */
  async clear(topic: Topic): Promise<void> {
    const id = topic.stored.id.toString("hex");
    if (!this.#byTopic.delete(id)) return;
    await this.#store.append([this.#state.toPending(["schema", id], null)]);
  }

  /** Throws `unprocessable` with the list of fields if the payload violates the topic's schema. */
  check(topic: Topic, payload: Buffer): void {
    if (this.#byTopic.size === 0) return;
    const schema = this.find(topic);
    if (schema === undefined) return;
    const violations = checkPayload(schema, payload);
    if (violations.length === 0) return;
    const [{ field, message }] = violations as [(typeof violations)[0]];
    const place = field === "" ? "it" : field;
    throw new PlatformError(
      "unprocessable",
      `The payload does not fit the schema of the topic: ${place} ${message}.`,
      { fields: { fields: violations } },
    );
  }
}

function checkPayload(schema: CompiledSchema, payload: Buffer) {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString("utf8"));
  } catch {
    return [{ field: "", message: "must be JSON" }];
  }
  return schema.check(value);
}
