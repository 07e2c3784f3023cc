// An in-memory cache with bounds on entries, bytes and age.
import { systemClock, type Clock } from "@platform/kernel/time";

/** Options of a {@link Cache}. */
export interface CacheOptions {
  /** Default lifetime of entries in seconds; without it, entries live until they are evicted. */
  ttl?: number;
  /** Maximum number of entries; default 10 000. The least recently used is evicted. */
  entriesMax?: number;
  /** Maximum size of all keys and values in bytes, as JSON; default 67 108 864. A larger value is not stored. */
  bytesMax?: number;
}

/** Counts of a cache since its creation. */
export interface CacheCounts {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
}

interface Entry {
  readonly value: unknown;
  readonly bytes: number;
  /** Monotonic ms; Infinity without a lifetime. */
  readonly expiresMs: number;
}

const KEY_CHARACTERS_MAX = 1_024;

/**
 * A cache of JSON values and bytes in this process. It starts empty, so it must not be the only place of a value. Values
 * are kept as they are, not copied: change a copy, not the value that `get` returned.
 *
 * ```ts
 * const hot = cache({ ttl: 60 });
 * const rates = await hot.load("rates", () => fetchRates());
 * ```
 */
export class Cache {
  readonly #ttlMs: number;
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #loads = new Map<string, Promise<unknown>>();
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #evictions = 0;

  constructor(options: CacheOptions = {}, clock: Pick<Clock, "monotonicMs"> = systemClock) {
    this.#ttlMs = options.ttl === undefined ? Infinity : readTtl(options.ttl);
    this.#entriesMax = readBound("entriesMax", options.entriesMax ?? 10_000);
    this.#bytesMax = readBound("bytesMax", options.bytesMax ?? 67_108_864);
    this.#clock = clock;
  }

  get counts(): CacheCounts {
    return {
      entries: this.#entries.size,
      bytes: this.#bytes,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictions,
    };
  }

  /** Returns a value, or undefined if it is missing or has expired. The type is the caller's claim. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- shorter than a cast at each call
  get<T = unknown>(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.monotonicMs() >= entry.expiresMs) {
      if (entry !== undefined) this.#remove(key, entry);
      this.#misses++;
      return undefined;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#hits++;
    return entry.value as T;
  }

  /**
   * Stores a value for `ttlSeconds` (default: the cache's). Returns false, and keeps nothing under the key, if the value
   * is larger than the cache. Throws a TypeError for undefined, functions and other values without a JSON form.
   */
  set(key: string, value: unknown, ttlSeconds?: number): boolean {
    const bytes = sizeOf(key, value);
    const ttlMs = ttlSeconds === undefined ? this.#ttlMs : readTtl(ttlSeconds);
    this.delete(key);
    if (bytes > this.#bytesMax) return false;
    this.#entries.set(key, { value, bytes, expiresMs: this.#clock.monotonicMs() + ttlMs });
    this.#bytes += bytes;
    this.#evict();
    return true;
  }

  /** Removes a value; false if it was missing. */
  delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#remove(key, entry);
    return true;
  }

  /** Removes all values. */
  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  /**
   * Returns the value, or calls `load`, stores its result and returns it. Concurrent calls for a key share one call of
   * `load`; an error is thrown to all of them and not stored. Undefined is returned but not stored.
   */
  async load<T>(key: string, load: () => T | Promise<T>, ttlSeconds?: number): Promise<T> {
    const known = this.get<T>(key);
    if (known !== undefined) return known;
    const running = this.#loads.get(key) as Promise<T> | undefined;
    if (running !== undefined) return running;
    const started = this.#loadAndSet(key, load, ttlSeconds);
    this.#loads.set(key, started);
    try {
      return await started;
    } finally {
      this.#loads.delete(key);
    }
  }

  async #loadAndSet<T>(
    key: string,
    load: () => T | Promise<T>,
    ttlSeconds: number | undefined,
  ): Promise<T> {
    const value = await load();
    if (value !== undefined) this.set(key, value, ttlSeconds);
    return value;
  }

  #evict(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= this.#entriesMax && this.#bytes <= this.#bytesMax) return;
      this.#remove(key, entry);
      this.#evictions++;
    }
  }

  #remove(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

function sizeOf(key: string, value: unknown): number {
  if (typeof key !== "string" || key === "" || key.length > KEY_CHARACTERS_MAX) {
    throw new TypeError(`cache: a key must be a string of 1 to ${KEY_CHARACTERS_MAX} characters`);
  }
  if (value instanceof Uint8Array) return key.length + value.byteLength;
  // Throws a TypeError for cycles and bigints.
  const text = JSON.stringify(value) as string | undefined;
  if (text !== undefined) return key.length + Buffer.byteLength(text);
  throw new TypeError(`cache: a value of type ${typeof value} cannot be stored under "${key}"`);
}

function readTtl(seconds: number): number {
  if (typeof seconds === "number" && seconds > 0) return seconds * 1_000;
  throw new RangeError(`cache: ttl must be a number of seconds above 0, not ${String(seconds)}`);
}

function readBound(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new RangeError(`cache: ${name} must be an integer above 0, not ${String(value)}`);
}
