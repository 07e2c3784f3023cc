// Addresses that outgoing requests to user-supplied URLs may reach: public unicast, and networks that the operator
// allowed.
import { isIPv4, isIPv6 } from "node:net";
import { AddressSet } from "../network/index.ts";

/** Decides whether an address is allowed. */
export interface AddressPolicy {
  /** True if connections to this IPv4 or IPv6 address (no zone, no brackets) are allowed. */
  isAllowed(address: string): boolean;
}

// https://www.iana.org/assignments/iana-ipv4-special-registry: all ranges that are not globally reachable, and
// multicast.
const PRIVATE_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
] as const;

// IPv6: only global unicast (RFC 4291 section 2.4) is public, except ranges that embed IPv4 addresses (6to4, Teredo),
// documentation and benchmarking. NAT64 and mapped addresses are outside of it.
const GLOBAL_IPV6 = "2000::/3";
const SPECIAL_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"] as const;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Creates the policy. `allowed` are networks in CIDR form, or single addresses, in addition to public addresses. Throws
 * a RangeError for invalid ones.
 */
export function createAddressPolicy(allowed: readonly string[] = []): AddressPolicy {
  const open = new AddressSet(allowed);
  const privateIpv4 = new AddressSet(PRIVATE_IPV4);
  const globalIpv6 = new AddressSet([GLOBAL_IPV6]);
  const specialIpv6 = new AddressSet(SPECIAL_IPV6);
  return {
    isAllowed(address) {
      const plain = MAPPED_IPV4.exec(address)?.[1] ?? address;
      if (isIPv4(plain)) return open.has(plain) || !privateIpv4.has(plain);
      if (!isIPv6(plain) || plain.includes("%")) return false;
      if (open.has(plain)) return true;
      return globalIpv6.has(plain) && !specialIpv6.has(plain);
    },
  };
}
