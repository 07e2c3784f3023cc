// Spending of tenants at models, in memory that all workers share.

/** Tenants with a place; those that come later share one, and cannot have a budget. */
export const AI_ACCOUNTS_MAX = 32_768;

/** Days of which an account has the sum at the same time, so that a new day never meets requests of the one before. */
const BANKS = 4;
/** Tag, lock, and for each bank its day, its sum and that of other gateways. */
const WORDS = 2 + BANKS * 3;
const TAG = 0;
const LOCK = 1;
const FIRST_BANK = 2;
/** Probes of a lookup; the table is never much fuller than its tenants need. */
const PROBES_MAX = 64;
const LOCK_SPINS = 1_000_000;

/** Size of the shared memory of {@link AiAccounts}; occupied as it is used. */
export const AI_ACCOUNTS_BYTES = AI_ACCOUNTS_MAX * WORDS * 8;

/** Place of a tenant. */
export type AiAccount = number & { readonly __brand: "AiAccount" };

/**
 * Sums of reserved and settled cost in pico-USD by tenant and UTC day.
 *
 *     BigInt64  [AI_ACCOUNTS_MAX][14]   tag of the tenant (0: unused), lock, then 4 × day, its sum, sum of other gateways
 *
 * A reservation adds itself, then compares, and withdraws if the sum exceeds the budget. Of those that stay, each has seen
 * all that were before it, so that budgets hold across threads without a lock.
 */
export class AiAccounts {
  readonly #words: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new BigInt64Array(buffer);
  }

  /** The account of a tenant with this tag, which is not 0; undefined if there is no place left. */
  find(tag: bigint): AiAccount | undefined {
    const words = this.#words;
    const start = Number(BigInt.asUintN(32, tag)) % AI_ACCOUNTS_MAX;
    for (let probe = 0; probe < PROBES_MAX; probe++) {
      const account = (start + probe) % AI_ACCOUNTS_MAX;
      const at = account * WORDS + TAG;
      const found = Atomics.load(words, at);
      if (found === tag) return account as AiAccount;
      if (found !== 0n) continue;
      const claimed = Atomics.compareExchange(words, at, 0n, tag);
      if (claimed === 0n || claimed === tag) return account as AiAccount;
    }
    return undefined;
  }

  /** Adds to the sum of a day, whatever the budget is. Days are numbered from 1970. */
  add(account: AiAccount, day: number, pico: bigint): void {
    const at = this.#findBank(account, day);
    if (at !== -1) Atomics.add(this.#words, at, pico);
  }

  /** Adds to the sum of a day unless it would then exceed `limit`; false if it would. */
  reserve(account: AiAccount, day: number, pico: bigint, limit: bigint): boolean {
    const at = this.#findBank(account, day);
    if (at === -1) return false;
    const before = Atomics.add(this.#words, at, pico);
    if (before + pico <= limit) return true;
    Atomics.sub(this.#words, at, pico);
    return false;
  }

  /** The sum of a day. */
  read(account: AiAccount, day: number): bigint {
    const at = this.#findBank(account, day);
    return at === -1 ? 0n : Atomics.load(this.#words, at);
  }

  /** Notes the sum of other gateways, as it was last known. */
  setOthers(account: AiAccount, day: number, pico: bigint): void {
    const at = this.#findBank(account, day);
    if (at !== -1) Atomics.store(this.#words, at + 1, pico);
  }

  /** The sum of other gateways as it was last known. */
  readOthers(account: AiAccount, day: number): bigint {
    const at = this.#findBank(account, day);
    return at === -1 ? 0n : Atomics.load(this.#words, at + 1);
  }

  // Place of the sum; -1 for a day that is over and whose bank has another one.
  #findBank(account: AiAccount, day: number): number {
    const words = this.#words;
    const at = account * WORDS + FIRST_BANK + (day % BANKS) * 3;
    const wanted = BigInt(day) + 1n;
    const current = Atomics.load(words, at);
    if (current === wanted) return at + 1;
    if (current > wanted) return -1;
    this.#lock(account);
    try {
      if (Atomics.load(words, at) < wanted) {
        Atomics.store(words, at + 1, 0n);
        Atomics.store(words, at + 2, 0n);
        Atomics.store(words, at, wanted);
      }
    } finally {
      Atomics.store(words, account * WORDS + LOCK, 0n);
    }
    return Atomics.load(words, at) === wanted ? at + 1 : -1;
  }

  // Held for nanoseconds, once a day; its holder can only be a thread that was ended in the middle.
  #lock(account: AiAccount): void {
    const at = account * WORDS + LOCK;
    for (let spin = 0; spin < LOCK_SPINS; spin++)
      if (Atomics.compareExchange(this.#words, at, 0n, 1n) === 0n) return;
  }
}

/** The tag of a tenant: 64 bits of a keyed digest. */
export function readAccountTag(digest: Buffer): bigint {
  const tag = digest.readBigInt64LE(0);
  return tag === 0n ? 1n : tag;
}

/** The number of a UTC day since 1970. */
export function readDay(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS);
}

/** Milliseconds of a day. */
export const DAY_MS = 86_400_000;
