// Ids of Kafka's idempotent producers: never given twice, reserved durably in blocks.
import { type StateTable, readJson } from "./state.ts";
import type { Store } from "./store.ts";

/** Ids that one durable write reserves; a crash skips what was left of a block. */
const BLOCK_SIZE = 1000;

/** Hands out producer ids. */
export class ProducerIds {
  readonly #store: Store;
  readonly #state: StateTable;
  #next: number;
  #reserved: number;
  #reserving: Promise<void> | undefined;

  private constructor(store: Store, state: StateTable, next: number) {
    this.#store = store;
    this.#state = state;
    this.#next = next;
    this.#reserved = next;
  }

  /** Goes on after the last block that was reserved. */
  static open(store: Store, state: StateTable): ProducerIds {
    const found = state.take("producer-ids")[0];
    const next = found === undefined ? 0 : Number(readJson(found.value));
    return new ProducerIds(store, state, next);
  }

  /** An id that nobody else has or ever had. */
  async take(): Promise<number> {
    while (this.#next >= this.#reserved) {
      this.#reserving ??= this.#reserve().finally(() => {
        this.#reserving = undefined;
      });
      await this.#reserving;
    }
    return this.#next++;
  }

  async #reserve(): Promise<void> {
    const until = this.#reserved + BLOCK_SIZE;
    await this.#store.append([this.#state.toPendingJson(["producer-ids"], until)]);
    this.#reserved = until;
  }
}
