// One minute of delayed messages in slots of ten milliseconds; fourteen bytes or so each.

/** Resolution of delays. */
export const slotMs = 10;
/** Slots of a minute. */
const slotCount = 60_000 / slotMs;

/**
 * Offsets by the slot in which they are due. `slot` counts from the minute's start. Taking a slot gives its offsets in
 * ascending order.
 */
export class DelayWheel {
  readonly #heads = new Int32Array(slotCount).fill(-1);
  #next = new Int32Array(64);
  #offsets = new Float64Array(64);
  #used = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(slot: number, offset: number): void {
    if (this.#used === this.#next.length) this.#grow();
    const place = this.#used++;
    this.#offsets[place] = offset;
    this.#next[place] = this.#heads[slot]!;
    this.#heads[slot] = place;
    this.#count++;
  }

  /** The first slot at or after `from` that has anything, up to and with `to`; undefined if none has. */
  findSlot(from: number, to: number): number | undefined {
    for (let slot = from; slot <= Math.min(to, slotCount - 1); slot++) {
      if (this.#heads[slot]! >= 0) return slot;
    }
    return undefined;
  }

  /** Takes a slot's offsets out. */
  take(slot: number): Float64Array {
    let size = 0;
    for (let at = this.#heads[slot]!; at >= 0; at = this.#next[at]!) size++;
    const offsets = new Float64Array(size);
    for (let at = this.#heads[slot]!, place = 0; at >= 0; at = this.#next[at]!) {
      offsets[place++] = this.#offsets[at]!;
    }
    this.#heads[slot] = -1;
    this.#count -= size;
    return offsets.sort();
  }

  #grow(): void {
    const next = new Int32Array(this.#next.length * 2);
    next.set(this.#next);
    this.#next = next;
    const offsets = new Float64Array(next.length);
    offsets.set(this.#offsets);
    this.#offsets = offsets;
  }
}
