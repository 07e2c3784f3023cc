// Looks up the addresses of targets off the request path and keeps the last good answer.
import { isIP } from "node:net";

/** A system lookup: all addresses of a name, or an error. `dns.promises.lookup` with `all` in service. */
export type Lookup = (name: string) => Promise<readonly { address: string }[]>;

/** What {@link Resolver} needs. */
export interface ResolverOptions {
  lookup: Lookup;
  /** Between two lookups of a name. */
  intervalMs: number;
  /** A lookup that takes longer has failed. */
  timeoutMs: number;
  /** Called when a lookup failed; there may be an older answer still. */
  onFailure: (name: string, error: unknown) => void;
}

/** Every ten seconds, five for an answer. */
export const RESOLVER_TIMES_DEFAULT = { intervalMs: 10_000, timeoutMs: 5_000 } as const;

/** Most addresses of one name that are used. */
const ADDRESSES_MAX = 16;

interface Watched {
  addresses: readonly string[];
  listeners: Set<(addresses: readonly string[]) => void>;
  first: Promise<void>;
}

/** Follows the addresses of names while someone watches them. One per worker; {@link close} ends it. */
export class Resolver {
  readonly #options: ResolverOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ResolverOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.refresh(), options.intervalMs);
    this.#timer.unref();
  }

  /**
   * Calls `listener` whenever the addresses of `name` are known to have changed, at once if they are known already.
   * `ready` settles once the first lookup is over, well or badly; `stop` ends the watch. IP addresses and `localhost`
   * (RFC 6761 section 6.3) need no lookup.
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

  /** Looks every watched name up now. */
  refresh(): void {
    for (const [name, watched] of this.#watched) void this.#lookUp(name, watched);
  }

  /** Ends all lookups. */
  close(): void {
    clearInterval(this.#timer);
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
    timer = setTimeout(() => reject(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    timer.unref();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
