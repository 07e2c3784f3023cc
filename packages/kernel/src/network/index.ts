// IP addresses, networks, and client addresses behind proxies.
export { AddressSet, isLoopback, isNetwork } from "./address-set.ts";
export { AddressTrie, buildAddressTrie } from "./address-trie.ts";
export { findClientAddress, type ForwardingHop, readProto, traceHops } from "./client-address.ts";
export { isSerializedOrigin } from "./origin.ts";
export { findSubscriberNetwork } from "./subscriber-network.ts";
