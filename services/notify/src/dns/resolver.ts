// The DNS lookups of the service: from configured servers or those of the system, with a timeout and a bounded cache.
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import type { Clock } from "@platform/kernel/time";

/** Records: TXT as lists of strings per record, others as strings; MX records are objects. */
type DnsRecords = string[][] | string[];

/** Looks up records. Rejects with an error whose `code` is that of DNS, such as `ENOTFOUND`. */
export type DnsLookup = (name: string, type: string) => Promise<DnsRecords>;

/** A record of type MX. */
export interface MxRecord {
  exchange: string;
  priority: number;
}

/** Options of {@link DnsResolver}. */
export interface DnsResolverOptions {
  /** `address` or `address:port`; undefined for the servers of the system. */
  servers: readonly string[] | undefined;
  clock: Clock;
}

interface CachedAnswer {
  answer: Promise<DnsRecords>;
  untilMs: number;
}

const TRY_MS = 2_500;
const TRIES = 2;
const CACHED_MAX = 4_096;
/** Larger answers are not cached: senders choose the names of keys. */
const CACHED_CHARACTERS_MAX = 4_096;
const FOUND_MS = 60_000;
const MISSING_MS = 30_000;
const FAILED_MS = 5_000;
/** The name exists without such records; or it does not exist. */
const MISSING = new Set(["ENODATA", "ENOTFOUND"]);

/** Resolves names. Concurrent lookups of the same records share one query. */
export class DnsResolver {
  readonly #clock: Clock;
  readonly #resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  readonly #cached = new Map<string, CachedAnswer>();

  constructor({ servers, clock }: DnsResolverOptions) {
    this.#clock = clock;
    if (servers !== undefined) this.#resolver.setServers(servers);
  }

  /** Looks up records; answers are at most a minute old. */
  readonly lookup: DnsLookup = (name, type) => {
    const known = this.#cached.get(toKey(name, type));
    if (known !== undefined && this.#clock.monotonicMs() < known.untilMs) return known.answer;
    return this.lookupNow(name, type);
  };

  /** Looks up records at the servers, whose caches may have older answers. */
  readonly lookupNow: DnsLookup = (name, type) => {
    const answer = this.#resolver.resolve(name, type) as Promise<DnsRecords>;
    void this.#keep(toKey(name, type), answer);
    return answer;
  };

  /** Returns the TXT records of a name, each joined; empty if there are none. Rejects if DNS fails. */
  async readTexts(name: string): Promise<string[]> {
    const records = (await this.#find(name, "TXT")) as string[][];
    return records.map((parts) => parts.join(""));
  }

  /** Returns the mail exchangers of a name; empty if there are none. Rejects if DNS fails. */
  async readMx(name: string): Promise<readonly MxRecord[]> {
    return (await this.#find(name, "MX")) as unknown as MxRecord[];
  }

  /** Returns the addresses of a name, IPv4 first; empty if there are none. Rejects if DNS fails. */
  async readAddresses(name: string): Promise<string[]> {
    const [v4, v6] = await Promise.all([this.#find(name, "A"), this.#find(name, "AAAA")]);
    return [...(v4 as string[]), ...(v6 as string[])];
  }

  /** Returns the addresses of a host, in the form of `createEgress`. */
  async resolveHost(host: string): Promise<{ address: string; family: number }[]> {
    const addresses = await this.readAddresses(host);
    return addresses.map((address) => ({ address, family: isIP(address) }));
  }

  async #find(name: string, type: string): Promise<DnsRecords> {
    try {
      return await this.lookup(name, type);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  async #keep(key: string, answer: Promise<DnsRecords>): Promise<void> {
    const entry: CachedAnswer = { answer, untilMs: Number.POSITIVE_INFINITY };
    this.#cached.delete(key);
    this.#cached.set(key, entry);
    if (this.#cached.size > CACHED_MAX) this.#cached.delete(this.#cached.keys().next().value!);
    const keptMs = await answer.then(chooseTime, (error: unknown) =>
      isMissing(error) ? MISSING_MS : FAILED_MS,
    );
    entry.untilMs = this.#clock.monotonicMs() + keptMs;
    if (keptMs === 0 && this.#cached.get(key) === entry) this.#cached.delete(key);
  }
}

/** True if a lookup failed because the records do not exist, which is an answer. */
export function isMissing(error: unknown): boolean {
  return MISSING.has(readDnsCode(error));
}

/** Returns the code of a failed lookup. */
export function readDnsCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

function toKey(name: string, type: string): string {
  return `${type} ${name.toLowerCase()}`;
}

function chooseTime(records: DnsRecords): number {
  return JSON.stringify(records).length > CACHED_CHARACTERS_MAX ? 0 : FOUND_MS;
}
