// The client's address: the first address of the forwarding chain that is not a trusted proxy.
import { readAddress, type AddressSet } from "./address-set.ts";

/** Maximum number of hops; longer chains of proxies do not occur in practice. */
const HOPS_MAX = 32;
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns the client's address from the socket's peer and the value of `X-Forwarded-For` (all its lines, joined by
 * commas). Scans the chain from the right while the hops are trusted, up to 32; text that is not an address ends the
 * scan.
 */
export function findClientAddress(peer: string, chain: string, trusted: AddressSet): string {
  let client = peer;
  if (!trusted.has(peer)) return client;
  for (let end = chain.length, hops = 0; end > 0 && hops < HOPS_MAX; hops += 1) {
    const comma = chain.lastIndexOf(",", end - 1);
    const hop = readHop(chain.slice(comma + 1, end).trim());
    if (hop === undefined) return client;
    client = hop;
    if (!trusted.has(hop)) return client;
    end = comma;
  }
  return client;
}

// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
function readHop(text: string): string | undefined {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  const address = bracketed ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  if (readAddress(address) === undefined) return undefined;
  // As sockets do: listeners for both versions report mapped addresses.
  return MAPPED.exec(address)?.[1] ?? address;
}
