// The network of one subscriber, for limits by address.
import { readAddress } from "./address-set.ts";

const MAPPED_BYTES = 12;
const NETWORK_BYTES = 8;

/**
 * Returns an IPv4 address as it is, also a mapped one, and the first 64 bits of an IPv6 address, which a subscriber has at
 * least (RFC 6177): the same text for all spellings. Other text is returned unchanged.
 */
export function findSubscriberNetwork(address: string): string {
  if (!address.includes(":")) return address;
  const bytes = readAddress(address);
  if (bytes === undefined) return address;
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff;
  if (isMapped) return bytes.subarray(MAPPED_BYTES).join(".");
  return `${Buffer.from(bytes.subarray(0, NETWORK_BYTES)).toString("hex")}::`;
}
