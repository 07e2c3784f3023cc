// The durable WebAssembly transforms of topics and their runs, sandboxed by @platform/wasm.
import { createHash } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import { GuestError, type GuestModule, type GuestPool } from "@platform/wasm";
import type { StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** Result of a run; `reason` is suitable for a dead letter. */
export type TransformResult =
  | { kind: "done"; payload: Buffer }
  | { kind: "failed"; reason: string };

/** Called after each run. */
export type TransformObserver = (
  run: { durationNs: number; failed: boolean },
  topic: Topic,
) => void;

interface Registered {
  bytes: Buffer;
  sha256?: string;
  module: Promise<GuestModule> | undefined;
}

/** Transforms by topic. */
export class Transforms {
  readonly #store: Store;
  readonly #state: StateTable;
  readonly #guests: GuestPool;
  readonly #observe: TransformObserver;
  readonly #byTopic = new Map<string, Registered>();

  constructor(
    store: Store,
    state: StateTable,
    topics: Topics,
    guests: GuestPool,
    observe: TransformObserver,
  ) {
    this.#store = store;
    this.#state = state;
    this.#guests = guests;
    this.#observe = observe;
    for (const { key, value } of state.take("transform")) {
      const id = String(key[1]);
      if (topics.findByHexId(id) === undefined) continue;
      this.#byTopic.set(id, { bytes: value, module: undefined });
    }
    topics.watch({ deleted: (topic) => void this.clear(topic).catch(() => undefined) });
  }

  has(topic: Topic): boolean {
    return this.#byTopic.size > 0 && this.#byTopic.has(topic.stored.id.toString("hex"));
  }

  /** Size in bytes and SHA-256 in hex of a topic's module; undefined without a transform. */
  describe(topic: Topic): { bytes: number; sha256: string } | undefined {
    const registered = this.#byTopic.get(topic.stored.id.toString("hex"));
    if (registered === undefined) return undefined;
    const { bytes } = registered;
    registered.sha256 ??= createHash("sha256").update(bytes).digest("hex");
    return { bytes: bytes.length, sha256: registered.sha256 };
  }

  /** Validates, compiles and registers a module durably. Throws `validation_failed` or `payload_too_large`. */
  async register(topic: Topic, bytes: Buffer): Promise<void> {
    let module: GuestModule;
    try {
      module = await this.#guests.load(bytes);
    } catch (error) {
      throw toRegistrationError(error);
    }
    const id = topic.stored.id.toString("hex");
    await this.#store.append([this.#state.toPending(["transform", id], bytes)]);
    if (topic.stored.live) this.#byTopic.set(id, { bytes, module: Promise.resolve(module) });
  }

  /** Deletes a topic's transform, durably. */
  async clear(topic: Topic): Promise<void> {
    const id = topic.stored.id.toString("hex");
    if (!this.#byTopic.delete(id)) return;
    await this.#store.append([this.#state.toPending(["transform", id], null)]);
  }

  /**
   * Prepares runs of a module, or of the topic's own, which are neither stored nor counted. Throws as `register`, and
   * `not_found` if the topic has none.
   */
  async prepareTrial(
    topic: Topic,
    bytes: Buffer | undefined,
  ): Promise<(payload: Buffer) => Promise<TransformResult>> {
    const chosen = bytes ?? this.#byTopic.get(topic.stored.id.toString("hex"))?.bytes;
    if (chosen === undefined) throw new PlatformError("not_found", "The topic has no transform.");
    let module: GuestModule;
    try {
      module = await this.#guests.load(chosen);
    } catch (error) {
      throw toRegistrationError(error);
    }
    return (payload) => this.#call(() => module, payload);
  }

  /**
   * Runs a topic's transform. Failures of the module are results; only a full pool throws (`overloaded`), since then the
   * module did not run.
   */
  async run(topic: Topic, payload: Buffer): Promise<TransformResult> {
    const registered = this.#byTopic.get(topic.stored.id.toString("hex"));
    if (registered === undefined) return { kind: "done", payload };
    const started = process.hrtime.bigint();
    let failed = true;
    try {
      const load = () => (registered.module ??= this.#guests.load(registered.bytes));
      const result = await this.#call(load, payload);
      failed = result.kind === "failed";
      return result;
    } finally {
      this.#observe({ durationNs: Number(process.hrtime.bigint() - started), failed }, topic);
    }
  }

  async #call(
    load: () => GuestModule | Promise<GuestModule>,
    payload: Buffer,
  ): Promise<TransformResult> {
    try {
      const { buffer, byteOffset, length } = await this.#guests.call(await load(), payload);
      return { kind: "done", payload: Buffer.from(buffer, byteOffset, length) };
    } catch (error) {
      if (!(error instanceof GuestError)) throw error;
      if (error.code === "overloaded" || error.code === "closed") {
        throw new PlatformError("overloaded", "Too many messages wait for their transform.");
      }
      return { kind: "failed", reason: `transform failed: ${error.code}: ${error.message}` };
    }
  }
}

function toRegistrationError(error: unknown): unknown {
  if (!(error instanceof GuestError)) return error;
  const code = error.code === "module-too-large" ? "payload_too_large" : "validation_failed";
  return new PlatformError(code, `The module is invalid: ${error.message}.`, { cause: error });
}
