// Gives out the cells of shared memory on the control plane: one per key, reused late.

/** What {@link SlotTable} needs. */
export interface SlotTableOptions {
  /** Slots are 0 … slotsMax − 1. */
  slotsMax: number;
  /** How long a released slot rests, so that exchanges that still drain cannot touch its next owner. */
  restMs: number;
  /** A monotonic clock in milliseconds. */
  readNowMs: () => number;
  /** Called before a slot that had another owner is given out: clear its cells here. */
  onReuse: (slot: number) => void;
}

/** A counted assignment of slots to keys: equal keys share a slot, the last release frees it. */
export class SlotTable {
  readonly #options: SlotTableOptions;
  readonly #slots = new Map<string, { slot: number; holders: number }>();
  readonly #resting: { slot: number; freeAtMs: number }[] = [];
  #fresh = 0;

  constructor(options: SlotTableOptions) {
    this.#options = options;
  }

  /** The slot of `key`, counted once more; undefined where all slots are taken or resting. */
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

  /** Gives one count of `key` back. Throws for a key that nobody holds. */
  release(key: string): void {
    const held = this.#slots.get(key);
    if (held === undefined) throw new Error("a slot was released that nobody holds");
    held.holders--;
    if (held.holders > 0) return;
    this.#slots.delete(key);
    const freeAtMs = this.#options.readNowMs() + this.#options.restMs;
    this.#resting.push({ slot: held.slot, freeAtMs });
  }

  /** The slot of `key` without counting it. */
  find(key: string): number | undefined {
    return this.#slots.get(key)?.slot;
  }

  #takeFree(): number | undefined {
    const rested = this.#resting[0];
    if (rested !== undefined && rested.freeAtMs <= this.#options.readNowMs()) {
      this.#resting.shift();
      this.#options.onReuse(rested.slot);
      return rested.slot;
    }
    return this.#fresh < this.#options.slotsMax ? this.#fresh++ : undefined;
  }
}
