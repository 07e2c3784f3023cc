// Turns at a limited number of places, shared fairly by tenants.
//
//   take ─► place is free, and no other tenant waits ─────────────────► turn ─► release
//      └──► waiting ─► the tenant with the fewest turns comes first ──► turn

/** A turn was refused: too many wait, the wait was too long, or the turns have ended. */
export class TurnRefusal extends Error {
  override readonly name = "TurnRefusal";
}

/** Options of {@link FairTurns}. */
export interface FairTurnsOptions {
  /** Turns at the same time. */
  readonly places: number;
  /** Waiting turns of all tenants. */
  readonly waitingMax: number;
  /** Maximum wait in ms. */
  readonly waitMs: number;
}

interface Waiter {
  readonly tenant: string;
  readonly grant: () => void;
  readonly refuse: (reason: Error) => void;
}

/**
 * Grants turns. A tenant has one at most while another waits. If as many wait as may, a tenant with fewer waiting turns takes
 * the place of the latest one of the tenant that has most.
 */
export class FairTurns {
  readonly #options: FairTurnsOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #turns = new Map<string, number>();
  #taken = 0;
  #hasEnded = false;

  constructor(options: FairTurnsOptions) {
    this.#options = options;
  }

  /** Turns that wait. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Turns that are granted. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Resolves when it is the caller's turn, with the function that ends it, which is harmless when called again. Rejects with a
   * {@link TurnRefusal}, and with the reason of `signal` when it aborts.
   */
  async take(tenant: string, signal?: AbortSignal): Promise<() => void> {
    if (this.#hasEnded) throw new TurnRefusal("the turns have ended");
    signal?.throwIfAborted();
    if (this.#isFree(tenant)) this.#grant(tenant);
    else await this.#wait(tenant, signal);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#release(tenant);
    };
  }

  /** Refuses all waiting and later turns. */
  end(): void {
    this.#hasEnded = true;
    for (const { refuse } of this.#waiters) refuse(new TurnRefusal("the turns have ended"));
  }

  // With another tenant waiting, a tenant has one turn at most.
  #isFree(tenant: string): boolean {
    if (this.#taken >= this.#options.places) return false;
    const isAlone = [...this.#waiters].every((waiter) => waiter.tenant === tenant);
    return isAlone || this.#count(tenant) === 0;
  }

  #count(tenant: string): number {
    return this.#turns.get(tenant) ?? 0;
  }

  #grant(tenant: string): void {
    this.#taken += 1;
    this.#turns.set(tenant, this.#count(tenant) + 1);
  }

  #release(tenant: string): void {
    this.#taken -= 1;
    const left = this.#count(tenant) - 1;
    if (left === 0) this.#turns.delete(tenant);
    else this.#turns.set(tenant, left);
    this.#grantNext();
  }

  // Of tenants with equally many turns, the one that has waited longest comes first.
  #grantNext(): void {
    if (this.#taken >= this.#options.places) return;
    let next: Waiter | undefined;
    for (const waiter of this.#waiters) {
      if (next === undefined || this.#count(waiter.tenant) < this.#count(next.tenant))
        next = waiter;
    }
    next?.grant();
  }

  #wait(tenant: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitingMax, waitMs } = this.#options;
    if (this.#waiters.size >= waitingMax) this.#makeRoom(tenant);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      this.#waiters.delete(waiter);
    };
    const refuse = (reason: Error): void => {
      leave();
      reject(reason);
    };
    const onAbort = (): void => refuse(signal?.reason as Error);
    const waiter: Waiter = {
      tenant,
      refuse,
      grant: () => {
        leave();
        this.#grant(tenant);
        resolve();
      },
    };
    const timer = setTimeout(() => refuse(new TurnRefusal("the wait was too long")), waitMs);
    signal?.addEventListener("abort", onAbort);
    this.#waiters.add(waiter);
    return promise;
  }

  #makeRoom(tenant: string): void {
    const waiting = new Map<string, Waiter[]>();
    for (const waiter of this.#waiters) {
      waiting.set(waiter.tenant, [...(waiting.get(waiter.tenant) ?? []), waiter]);
    }
    const most = [...waiting.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
    const own = waiting.get(tenant)?.length ?? 0;
    const refusal = new TurnRefusal("too many wait");
    if (most.length <= own + 1) throw refusal;
    most.at(-1)!.refuse(refusal);
  }
}
