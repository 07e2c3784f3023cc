// The state of circuit breakers by target, for live metrics.
import type { CircuitName, RouteSpec, SharedLinkState } from "../shared-state/index.ts";

const RANKS: Readonly<Record<CircuitName, number>> = { closed: 0, half_open: 1, open: 2 };

/** The state of each target's circuit by URL; of a target with several routes, the worst one. */
export function readBreakers(
  specs: readonly RouteSpec[],
  links: Pick<SharedLinkState, "describeCircuit">,
): Record<string, CircuitName> {
  const states = new Map<string, CircuitName>();
  for (const { resilience, targets } of specs) {
    if (resilience?.breaker === undefined) continue;
    for (const { url, link } of targets) {
      const state = links.describeCircuit(link);
      const known = states.get(url);
      if (known === undefined || RANKS[state] > RANKS[known]) states.set(url, state);
    }
  }
  return Object.fromEntries(states);
}
