// Resolution of names for requests that may reach certain networks only.
import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import { createAddressPolicy } from "@platform/kernel/egress";

/** Resolves names to public addresses and those of `networks`; a name with another address fails. */
export function createCheckedLookup(networks: readonly string[]): LookupFunction {
  const policy = createAddressPolicy(networks);
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      const isAllowed =
        first !== undefined && addresses.every((one) => policy.isAllowed(one.address));
      if (error !== null || !isAllowed) {
        callback(error ?? new Error(`${name}: the address is not allowed`), "");
      } else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
