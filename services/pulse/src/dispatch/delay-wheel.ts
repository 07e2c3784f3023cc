// One minute of delayed messages in slots of ten milliseconds, about fourteen bytes each.

/** Resolution of delays. */
export const SLOT_MS = 10;
/** Number of slots per minute. */
const SLOT_COUNT = 60_000 / SLOT_MS;

/** Offsets with their slots, ascending by slot, then by offset. */
export interface DueOffsets {
  slots: number[];
  offsets: number[];
}

/** Offsets by their due slot. `slot` counts from the start of the minute. */
export class DelayWheel {
  readonly #heads = new Int32Array(SLOT_COUNT).fill(-1);
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

  /** Removes and returns the offsets of the first slots up to and including `to`: whole slots until there are `enough`. */
  take(to: number, enough: number): DueOffsets {
    const slots: number[] = [];
    const offsets: number[] = [];
    for (let slot = 0; slot <= to && offsets.length < enough; slot++) {
      if (this.#heads[slot]! < 0) continue;
      const own = this.#read(slot);
      this.#heads[slot] = -1;
      this.#count -= own.length;
      for (const offset of own) {
        slots.push(slot);
        offsets.push(offset);
      }
    }
    if (this.#count === 0) this.#used = 0;
    return { slots, offsets };
  }

  /** The first offsets in order of slots, at most about `max`, without removing them. */
  peek(max: number): number[] {
    const offsets: number[] = [];
    for (let slot = 0; slot < SLOT_COUNT && offsets.length < max; slot++) {
      if (this.#heads[slot]! < 0) continue;
      for (const offset of this.#read(slot)) {
        if (offsets.push(offset) >= max) break;
      }
    }
    return offsets;
  }

  #read(slot: number): Float64Array {
    let size = 0;
    for (let at = this.#heads[slot]!; at >= 0; at = this.#next[at]!) size++;
    const offsets = new Float64Array(size);
    // The latest entry is at the head: in reverse, most are already in order.
    for (let at = this.#heads[slot]!, place = size; at >= 0; at = this.#next[at]!) {
      offsets[--place] = this.#offsets[at]!;
    }
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
