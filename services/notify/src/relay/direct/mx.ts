// Mail exchangers of a domain (RFC 5321 section 5.1, RFC 7505), cached.
import { Resolver } from "node:dns/promises";
import type { AddressPolicy } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";

/** A mail exchanger with its addresses. */
export interface MailExchanger {
  host: string;
  addresses: readonly string[];
}

/** Mail exchangers in the order in which they are tried, or the reason why there are none. */
export type MxResult =
  | { kind: "found"; exchangers: readonly MailExchanger[] }
  /** The domain accepts no mail (null MX). */
  | { kind: "refuses" }
  /** The domain does not exist, or has neither MX nor addresses. */
  | { kind: "missing" }
  /** The exchangers have private addresses only. */
  | { kind: "forbidden" }
  | { kind: "failed"; reason: string };

/** Options of {@link MxResolver}. */
export interface MxResolverOptions {
  /** DNS servers, `address` or `address:port`; empty means those of the system. */
  servers: readonly string[];
  /** Addresses that may be connected to. */
  policy: AddressPolicy;
  clock: Clock;
  /** A number from 0 to 1. */
  random: () => number;
}

const TIMEOUT_MS = 5_000;
const TRIES = 2;
const CACHED_MAX = 10_000;
const FOUND_MS = 5 * 60_000;
const FAILED_MS = 30_000;
const EXCHANGERS_MAX = 5;
const ADDRESSES_MAX = 4;
// The name exists without such records; or it does not exist.
const NO_RECORDS = new Set(["ENODATA", "ENOTFOUND"]);

/** Resolves mail exchangers. */
export class MxResolver {
  readonly #options: MxResolverOptions;
  readonly #resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  readonly #cached = new Map<string, { result: Promise<MxResult>; untilMs: number }>();

  constructor(options: MxResolverOptions) {
    this.#options = options;
    if (options.servers.length > 0) this.#resolver.setServers(options.servers);
  }

  /** Resolves a domain in A-label form. Never rejects. */
  async resolve(domain: string): Promise<MxResult> {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#cached.get(domain);
    if (known !== undefined && nowMs < known.untilMs) return known.result;
    const result = this.#read(domain);
    const entry = { result, untilMs: nowMs + FOUND_MS };
    this.#cached.delete(domain);
    this.#cached.set(domain, entry);
    if (this.#cached.size > CACHED_MAX) this.#cached.delete(this.#cached.keys().next().value!);
    if ((await result).kind === "failed") entry.untilMs = nowMs + FAILED_MS;
    return result;
  }

  /** Returns the TXT records of a name, joined; empty if there are none. Throws if DNS fails. */
  async readTexts(name: string): Promise<string[]> {
    try {
      return (await this.#resolver.resolveTxt(name)).map((parts) => parts.join(""));
    } catch (error) {
      if (NO_RECORDS.has(readCode(error))) return [];
      throw error;
    }
  }

  async #read(domain: string): Promise<MxResult> {
    try {
      const records = await this.#readMx(domain);
      if (records.length === 1 && records[0]!.exchange === "") return { kind: "refuses" };
      const hosts = records.length === 0 ? [domain] : this.#order(records);
      const exchangers: MailExchanger[] = [];
      let isForbidden = false;
      for (const host of hosts.slice(0, EXCHANGERS_MAX)) {
        const all = await this.#readAddresses(host);
        const addresses = all.filter((address) => this.#options.policy.isAllowed(address));
        isForbidden ||= addresses.length < all.length;
        if (addresses.length > 0)
          exchangers.push({ host, addresses: addresses.slice(0, ADDRESSES_MAX) });
      }
      if (exchangers.length > 0) return { kind: "found", exchangers };
      return { kind: isForbidden ? "forbidden" : "missing" };
    } catch (error) {
      return { kind: "failed", reason: `DNS: ${readCode(error)}` };
    }
  }

  async #readMx(domain: string): Promise<{ exchange: string; priority: number }[]> {
    try {
      return await this.#resolver.resolveMx(domain);
    } catch (error) {
      if (NO_RECORDS.has(readCode(error))) return [];
      throw error;
    }
  }

  async #readAddresses(host: string): Promise<string[]> {
    const read = async (work: Promise<string[]>): Promise<string[]> => {
      try {
        return await work;
      } catch (error) {
        if (NO_RECORDS.has(readCode(error))) return [];
        throw error;
      }
    };
    const [v4, v6] = await Promise.all([
      read(this.#resolver.resolve4(host)),
      read(this.#resolver.resolve6(host)),
    ]);
    return [...v4, ...v6];
  }

  // By preference; in a random order within the same one (RFC 5321 section 5.1).
  #order(records: readonly { exchange: string; priority: number }[]): string[] {
    return records
      .map(({ exchange, priority }) => ({
        host: exchange.toLowerCase().replace(/\.$/, ""),
        priority,
        key: this.#options.random(),
      }))
      .toSorted((a, b) => a.priority - b.priority || a.key - b.key)
      .map(({ host }) => host);
  }
}

function readCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
