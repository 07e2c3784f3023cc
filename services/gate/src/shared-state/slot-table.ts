// Assigns slots of shared memory to keys on the control plane; released slots are reused after a delay.

/** Options of {@link SlotTable}. */
export interface SlotTableOptions {
  /** Slots are 0 … slotsMax − 1. */
  slotsMax: number;
  /** Delay before a released slot is reused, so that draining exchanges cannot affect its next owner. */
  reuseDelayMs: number;
  /** A monotonic clock in milliseconds. */
  readNowMs: () => number;
  /** Called before a slot is reused, to clear its state. */
  onReuse: (slot: number) => void;
}

/** Reference-counted assignment of slots to keys: equal keys share a slot, the last release frees it. */
export class SlotTable {
  readonly #options: SlotTableOptions;
  readonly #slots = new Map<string, { slot: number; holders: number }>();
  #released: { slot: number; freeAtMs: number }[] = [];
  /** Index of the oldest in `#released`: removing the first of many elements would move all others. */
  #oldest = 0;
  #fresh = 0;

  constructor(options: SlotTableOptions) {
    this.#options = options;
  }

  /** Adds a reference to `key` and returns its slot; undefined if all slots are in use or waiting for reuse. */
  acquire(key: string): number | undefined {
    const held = this.#slots.get(key);
    if (held !== undefined) {
      held.holders++;
      return held.slot;
    }
    const slot = this.#takeFree();
    if (slot !== undefined) this.#slots.set(key, { slot, holders: 1 });
    return slot;
  }

  /** Removes a reference to `key`. Throws if there is no reference. */
  release(key: string): void {
    const held = this.#slots.get(key);
    if (held === undefined) throw new Error("a slot without references was released");
    held.holders--;
    if (held.holders > 0) return;
    this.#slots.delete(key);
    const freeAtMs = this.#options.readNowMs() + this.#options.reuseDelayMs;
    this.#released.push({ slot: held.slot, freeAtMs });
  }

  /** The slot of `key` without adding a reference. */
  find(key: string): number | undefined {
    return this.#slots.get(key)?.slot;
  }

  #takeFree(): number | undefined {
    const oldest = this.#released[this.#oldest];
    if (oldest !== undefined && oldest.freeAtMs <= this.#options.readNowMs()) {
      this.#dropOldest();
      this.#options.onReuse(oldest.slot);
      return oldest.slot;
    }
    return this.#fresh < this.#options.slotsMax ? this.#fresh++ : undefined;
  }

  #dropOldest(): void {
    this.#oldest++;
    if (this.#oldest * 2 < this.#released.length) return;
    this.#released = this.#released.slice(this.#oldest);
    this.#oldest = 0;
  }
}
