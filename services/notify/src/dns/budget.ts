// Time budgets of lookups.
import type { DnsLookup } from "./resolver.ts";

/**
 * Returns lookups that share one budget: after `budgetMs` all fail with `ETIMEOUT`, so that the checks of a message end
 * as temporary errors however many records they need.
 */
export function limitLookups(lookup: DnsLookup, budgetMs: number): DnsLookup {
  const endsAt = performance.now() + budgetMs;
  // Timers may fire some milliseconds early: the first one ends the budget.
  let isUsedUp = false;
  return (name, type) => {
    const leftMs = endsAt - performance.now();
    if (isUsedUp || leftMs <= 0) return Promise.reject(createTimeout(name));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        isUsedUp = true;
        reject(createTimeout(name));
      }, leftMs);
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
