// Outgoing requests to URLs supplied by others, without access to private networks.
export { createAddressPolicy, type AddressPolicy } from "./address-policy.ts";
export {
  createEgress,
  createEgressGuard,
  EgressError,
  type EgressErrorCode,
  type EgressFetch,
  type EgressGuard,
  type EgressGuardOptions,
  type EgressOptions,
} from "./egress.ts";
