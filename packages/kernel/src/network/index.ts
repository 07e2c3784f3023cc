// Addresses: of whom a request comes, and in which networks they are.
export { AddressSet, isLoopback, isNetwork } from "./address-set.ts";
export { findClientAddress } from "./client-address.ts";
