// Mail exchangers of a domain (RFC 5321 section 5.1, RFC 7505).
import type { AddressPolicy } from "@platform/kernel/egress";
import { readDnsCode, type DnsResolver, type MxRecord } from "../../dns/resolver.ts";

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
  dns: DnsResolver;
  /** Addresses that may be connected to. */
  policy: AddressPolicy;
  /** A number from 0 to 1. */
  random: () => number;
}

const EXCHANGERS_MAX = 5;
const ADDRESSES_MAX = 4;

/** Resolves mail exchangers. */
export class MxResolver {
  readonly #options: MxResolverOptions;

  constructor(options: MxResolverOptions) {
    this.#options = options;
  }

  /** Resolves a domain in A-label form. Never rejects. */
  async resolve(domain: string): Promise<MxResult> {
    const { dns, policy } = this.#options;
    try {
      const records = await dns.readMx(domain);
      if (records.length === 1 && records[0]!.exchange === "") return { kind: "refuses" };
      const hosts = records.length === 0 ? [domain] : this.#order(records);
      const exchangers: MailExchanger[] = [];
      let isForbidden = false;
      for (const host of hosts.slice(0, EXCHANGERS_MAX)) {
        const all = await dns.readAddresses(host);
        const addresses = all.filter((address) => policy.isAllowed(address));
        isForbidden ||= addresses.length < all.length;
        if (addresses.length > 0)
          exchangers.push({ host, addresses: addresses.slice(0, ADDRESSES_MAX) });
      }
      if (exchangers.length > 0) return { kind: "found", exchangers };
      return { kind: isForbidden ? "forbidden" : "missing" };
    } catch (error) {
      return { kind: "failed", reason: `DNS: ${readDnsCode(error)}` };
    }
  }

  // By preference; in a random order within the same one (RFC 5321 section 5.1).
  #order(records: readonly MxRecord[]): string[] {
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
