// The address step: refuses clients by the route's lists of networks.
import { AddressTrie } from "@platform/kernel/network";
import { PlatformError } from "@platform/kernel/errors";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { AddressesSpec, RouteSpec } from "../../shared-state/index.ts";

/** Addresses whose verdict is remembered; beyond it all are forgotten. */
const VERDICTS_MAX = 4_096;

/** Refuses addresses with 403. */
export function createAddressStep({ steps }: RouteSpec): Step | undefined {
  return steps.addresses === undefined ? undefined : new AddressStep(steps.addresses);
}

class AddressStep implements Step {
  readonly #allow: readonly AddressTrie[];
  readonly #block: readonly AddressTrie[];
  readonly #verdicts = new Map<string, boolean>();

  constructor({ allow, block }: AddressesSpec) {
    this.#allow = allow.map(({ trie }) => new AddressTrie(trie));
    this.#block = block.map(({ trie }) => new AddressTrie(trie));
  }

  run(exchange: GateExchange): boolean {
    const { clientAddress } = exchange.userData.forwarding;
    let isAllowed = this.#verdicts.get(clientAddress);
    if (isAllowed === undefined) {
      isAllowed = this.#judge(clientAddress);
      if (this.#verdicts.size >= VERDICTS_MAX) this.#verdicts.clear();
      this.#verdicts.set(clientAddress, isAllowed);
    }
    if (isAllowed) return true;
    throw new PlatformError("ip_blocked", "This address is not allowed here.");
  }

  #judge(address: string): boolean {
    if (this.#block.some((list) => list.has(address))) return false;
    return this.#allow.length === 0 || this.#allow.some((list) => list.has(address));
  }
}
