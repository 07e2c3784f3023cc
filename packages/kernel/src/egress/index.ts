// Calls to addresses that somebody else chose: guarded against reaching into the own network.
export { createAddressPolicy, type AddressPolicy } from "./address-policy.ts";
export {
  createEgress,
  EgressError,
  type EgressErrorCode,
  type EgressFetch,
  type EgressOptions,
  type EgressRequest,
  type ResolveHost,
  type ResolvedAddress,
} from "./egress.ts";
