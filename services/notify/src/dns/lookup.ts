// DNS lookups with a time budget, from the system's servers or configured ones.
import { Resolver } from "node:dns/promises";

/** Looks up records: TXT as lists of strings per record, MX as objects, others as strings. Rejects with a DNS error code. */
export type DnsLookup = (name: string, type: string) => Promise<string[][] | string[]>;

const TRY_MS = 1_500;
const TRIES = 2;

/** Creates lookups; `servers` are `address` or `address:port`, undefined for those of the system. */
export function createDnsLookup(servers: readonly string[] | undefined): DnsLookup {
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  return async (name, type) => (await resolver.resolve(name, type)) as string[][] | string[];
}

/**
 * Returns lookups that share one budget: after `budgetMs` all fail with `ETIMEOUT`, so that the checks of a message end
 * as temporary errors however many records they need.
 */
export function limitLookups(lookup: DnsLookup, budgetMs: number): DnsLookup {
  const endsAt = performance.now() + budgetMs;
  return (name, type) => {
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0) return Promise.reject(createTimeout(name));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(createTimeout(name)), leftMs);
      lookup(name, type)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  };
}

function createTimeout(name: string): Error {
  return Object.assign(new Error(`${name}: the time for DNS lookups is used up`), {
    code: "ETIMEOUT",
  });
}
