// The memory of incoming bodies: shares of tenants and of small bodies, the order of the queue, and the choice of bodies
// that must spill.
//
//   0 ──────────────── bodies that are large ──────────────┬── small ones only ──┐ bytesMax
//     a tenant that holds more than its share leaves this  │                     │
//     much of it to the others ◄───────────────────────────┘                     │
import { StoreError } from "../model/store-error.ts";

/** Requests of up to this many bytes are small: memory is reserved for them. */
export const SMALL_BYTES_MAX = 64 * 1024;

/** A body that holds memory. */
export interface MemoryHolder {
  readonly tenant: string;
  /** Memory held by this body in bytes, maintained by the budget. */
  heldBytes: number;
  /** Bytes received from the client since the budget last reset this count. */
  progressBytes: number;
  /** Called when another body needs memory: starts to release the memory of this one. False if that is impossible now. */
  yieldMemory(): boolean;
}

interface Waiter {
  holder: MemoryHolder;
  bytes: number;
  /** Called with true when the memory is granted, with false if the body was dropped. */
  resolve: (granted: boolean) => void;
}

/** Share of the memory that is reserved for small requests. */
const SMALL_PART = 1 / 8;
/** A tenant that holds more than this share of the memory must leave as much free for others. */
const TENANT_PART = 1 / 4;
/** Interval of the search for slow bodies while others wait. */
const LOOK_EVERY_MS = 250;
/** A body is slow if it grew by less than this share of its memory between two searches. */
const SLOW_PART = 1 / 32;

/**
 * Distributes memory. Of the waiting tenants the one with the least memory is next. While others wait, slow bodies must
 * move their bytes to disk.
 */
export class StagingBudget {
  readonly #bytesMax: number;
  readonly #waitingMax: number;
  #taken = 0;
  #takenLarge = 0;
  readonly #holders = new Set<MemoryHolder>();
  readonly #tenants = new Map<string, number>();
  #small: Waiter[] = [];
  #large: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(bytesMax: number, waitingMax: number) {
    this.#bytesMax = bytesMax;
    this.#waitingMax = waitingMax;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Number of bodies that wait for memory. */
  get waiting(): number {
    return this.#small.length + this.#large.length;
  }

  /** True if bodies wait for the kind of memory that a request of `bytes` needs. */
  isWanted(bytes: number): boolean {
    return (bytes <= SMALL_BYTES_MAX ? this.#small : this.#large).length > 0;
  }

  /** Claims bytes if they are free and no other body waits for them; returns whether it did. */
  tryTake(holder: MemoryHolder, bytes: number): boolean {
    if (this.isWanted(bytes) || !this.#admits(holder, bytes)) return false;
    this.#grant(holder, bytes);
    return true;
  }

  /**
   * Claims bytes. Returns `undefined` if they were claimed immediately, otherwise a promise: true when they are claimed,
   * false if the body was dropped meanwhile. Throws `SlowDown` if too many bodies wait.
   */
  take(holder: MemoryHolder, bytes: number): Promise<boolean> | undefined {
    if (this.tryTake(holder, bytes)) return undefined;
    this.#requirePlace(holder.tenant);
    const waiting = bytes <= SMALL_BYTES_MAX ? this.#small : this.#large;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    waiting.push({ holder, bytes, resolve });
    this.#timer ??= this.#startLooking();
    // The waiting bodies may wait only for memory that this tenant must leave to others.
    this.#dispatch();
    return promise;
  }

  /** Releases bytes. */
  give(holder: MemoryHolder, bytes: number): void {
    this.#taken -= bytes;
    if (bytes > SMALL_BYTES_MAX) this.#takenLarge -= bytes;
    holder.heldBytes -= bytes;
    if (holder.heldBytes === 0) this.#holders.delete(holder);
    const left = this.#tenants.get(holder.tenant)! - bytes;
    if (left > 0) this.#tenants.set(holder.tenant, left);
    else this.#tenants.delete(holder.tenant);
    if (this.waiting > 0) this.#dispatch();
  }

  /** The body needs no more memory and leaves the queue. */
  forget(holder: MemoryHolder): void {
    if (this.waiting === 0) return;
    for (const list of [this.#small, this.#large]) {
      const index = list.findIndex((waiter) => waiter.holder === holder);
      if (index >= 0) list.splice(index, 1)[0]!.resolve(false);
    }
    this.#dispatch();
  }

  #grant(holder: MemoryHolder, bytes: number): void {
    this.#taken += bytes;
    if (bytes > SMALL_BYTES_MAX) this.#takenLarge += bytes;
    if (holder.heldBytes === 0) this.#holders.add(holder);
    holder.heldBytes += bytes;
    this.#tenants.set(holder.tenant, (this.#tenants.get(holder.tenant) ?? 0) + bytes);
  }

  #admits({ tenant }: MemoryHolder, bytes: number): boolean {
    const isSmall = bytes <= SMALL_BYTES_MAX;
    // A request that exceeds the total still gets its turn, alone.
    if (isSmall ? this.#taken === 0 : this.#takenLarge === 0) return true;
    const smallOnly = this.#bytesMax * SMALL_PART;
    const limit = isSmall ? this.#bytesMax : this.#bytesMax - smallOnly;
    const held = this.#tenants.get(tenant) ?? 0;
    const share = this.#bytesMax * TENANT_PART;
    const left = held + bytes <= share ? 0 : isSmall ? smallOnly / 2 : share;
    return this.#taken + bytes <= limit - left;
  }

  #requirePlace(tenant: string): void {
    const all = [...this.#small, ...this.#large];
    const own = all.filter(({ holder }) => holder.tenant === tenant).length;
    // Half of the queue is for other tenants.
    if (all.length < this.#waitingMax && own < Math.max(1, this.#waitingMax / 2)) return;
    throw new StoreError("SlowDown", "Too many uploads wait for memory");
  }

  #dispatch(): void {
    this.#small = this.#serve(this.#small);
    this.#large = this.#serve(this.#large);
    if (this.waiting > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #serve(waiting: Waiter[]): Waiter[] {
    let left = waiting;
    while (left.length > 0) {
      const next = this.#chooseNext(left);
      if (next === undefined) break;
      left = left.filter((waiter) => waiter !== next);
      this.#grant(next.holder, next.bytes);
      next.resolve(true);
    }
    return left;
  }

  #chooseNext(waiting: readonly Waiter[]): Waiter | undefined {
    let next: Waiter | undefined;
    let least = Infinity;
    for (const waiter of waiting) {
      const held = this.#tenants.get(waiter.holder.tenant) ?? 0;
      if (held >= least) continue;
      next = waiter;
      least = held;
    }
    // A request that does not fit yet blocks the queue; otherwise large requests would never get memory.
    return next !== undefined && this.#admits(next.holder, next.bytes) ? next : undefined;
  }

  #startLooking(): NodeJS.Timeout {
    for (const holder of this.#holders) holder.progressBytes = 0;
    return setInterval(() => this.#askSlow(), LOOK_EVERY_MS).unref();
  }

  // The slowest first, and only as many as needed.
  #askSlow(): void {
    const slow = [...this.#holders]
      .filter(({ progressBytes, heldBytes }) => progressBytes < heldBytes * SLOW_PART)
      .sort((a, b) => a.progressBytes / a.heldBytes - b.progressBytes / b.heldBytes);
    for (const holder of this.#holders) holder.progressBytes = 0;
    const sum = (list: readonly Waiter[]) => list.reduce((total, { bytes }) => total + bytes, 0);
    let needed = sum(this.#small) + sum(this.#large);
    for (const holder of slow) {
      if (needed <= 0) return;
      const { heldBytes } = holder;
      if (holder.yieldMemory()) needed -= heldBytes;
    }
  }
}
