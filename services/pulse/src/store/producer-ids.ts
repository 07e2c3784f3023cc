// Ids of Kafka's idempotent producers: never reused, reserved durably in blocks.
import { type StateTable, readJson } from "./state.ts";
import type { Store } from "./store.ts";

/** Ids per reservation; a crash skips the rest of a block. */
const BLOCK_SIZE = 1000;

/** Allocates producer ids. */
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

  /** Continues after the last reserved block. */
  static open(store: Store, state: StateTable): ProducerIds {
    const found = state.take("producer-ids")[0];
    const next = found === undefined ? 0 : Number(readJson(found.value));
    return new ProducerIds(store, state, next);
  }

  /** Allocates an id that was never used. */
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
