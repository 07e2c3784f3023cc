// Resolves the addresses of targets in the background and keeps the last good result.
import { isIP } from "node:net";
import { every, type RepeatingTimer } from "@platform/kernel/time";

/** Resolves all addresses of a name; `dns.promises.lookup` with `all` in production. */
type Lookup = (name: string) => Promise<readonly { address: string }[]>;

/** Options of {@link Resolver}. */
export interface ResolverOptions {
  lookup: Lookup;
  /** Interval between two lookups of a name. */
  intervalMs: number;
  /** Timeout of a lookup. */
  timeoutMs: number;
  /** Called when a lookup fails; the previous addresses, if any, stay in use. */
  onFailure: (name: string, error: unknown) => void;
}

/** Lookups every ten seconds with a timeout of five. */
export const RESOLVER_TIMES_DEFAULT = { intervalMs: 10_000, timeoutMs: 5_000 } as const;

/** Maximum number of addresses used per name. */
const ADDRESSES_MAX = 16;

interface Watched {
  addresses: readonly string[];
  listeners: Set<(addresses: readonly string[]) => void>;
  first: Promise<void>;
}

/** Follows the addresses of watched names. One per worker; {@link close} ends it. */
export class Resolver {
  readonly #options: ResolverOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #timer: RepeatingTimer;

  constructor(options: ResolverOptions) {
    this.#options = options;
    this.#timer = every(
      options.intervalMs,
      () => this.refresh(),
      (error) => options.onFailure("", error),
    );
  }

  /**
   * Calls `listener` when the addresses of `name` change, and immediately if they are already known. `ready` resolves
   * when the first lookup has succeeded or failed; `stop` ends the watch. IP addresses and `localhost` (RFC 6761 section
   * 6.3) need no lookup.
   */
  watch(
    name: string,
    listener: (addresses: readonly string[]) => void,
  ): { ready: Promise<void>; stop: () => void } {
    const fixed = readFixedAddresses(name);
    if (fixed !== undefined) {
      listener(fixed);
      return { ready: Promise.resolve(), stop: () => undefined };
    }
    let watched = this.#watched.get(name);
    if (watched === undefined) {
      watched = { addresses: [], listeners: new Set(), first: Promise.resolve() };
      this.#watched.set(name, watched);
      watched.first = this.#lookUp(name, watched);
    } else if (watched.addresses.length > 0) {
      listener(watched.addresses);
    }
    const held = watched;
    held.listeners.add(listener);
    const stop = (): void => {
      held.listeners.delete(listener);
      if (held.listeners.size === 0 && this.#watched.get(name) === held) this.#watched.delete(name);
    };
    return { ready: held.first, stop };
  }

  /** Looks up every watched name now. */
  async refresh(): Promise<void> {
    const lookups = [...this.#watched].map(([name, watched]) => this.#lookUp(name, watched));
    await Promise.all(lookups);
  }

  /** Ends all lookups. */
  close(): void {
    void this.#timer.stop();
    this.#watched.clear();
  }

  async #lookUp(name: string, watched: Watched): Promise<void> {
    let found: readonly { address: string }[];
    try {
      found = await withTimeout(this.#options.lookup(name), this.#options.timeoutMs);
      if (found.length === 0) throw new Error("the name has no address");
    } catch (error) {
      if (this.#watched.get(name) === watched) this.#options.onFailure(name, error);
      return;
    }
    const addresses = found.slice(0, ADDRESSES_MAX).map((one) => one.address);
    if (sameMembers(addresses, watched.addresses)) return;
    watched.addresses = addresses;
    for (const listener of watched.listeners) listener(addresses);
  }
}

function readFixedAddresses(name: string): readonly string[] | undefined {
  const bare = name.startsWith("[") ? name.slice(1, -1) : name;
  if (isIP(bare) !== 0) return [bare];
  const lower = name.toLowerCase();
  return lower === "localhost" || lower.endsWith(".localhost") ? ["127.0.0.1", "::1"] : undefined;
}

function sameMembers(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((address) => b.includes(address));
}

async function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
    timer.unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
