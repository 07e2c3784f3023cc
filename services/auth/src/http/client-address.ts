// Who a request comes from: the socket's peer, or behind a trusted proxy the last address that is not one.
import { BlockList, isIP } from "node:net";
import type { Peer } from "@platform/kernel/http";

const hopsMax = 32;

/** Reads addresses. */
export class ClientAddress {
  readonly #trusted = new BlockList();

  /** `trusted` are addresses and CIDR ranges. Throws with the entry that is neither. */
  constructor(trusted: readonly string[]) {
    for (const entry of trusted) {
      const [address = "", bits] = entry.split("/");
      const family = isIP(address) === 6 ? "ipv6" : "ipv4";
      const prefix = bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits);
      if (isIP(address) === 0 || prefix > (family === "ipv6" ? 128 : 32)) {
        throw new Error(`PLATFORM_AUTH_TRUSTED_PROXIES: ${entry} is no address and no CIDR range`);
      }
      this.#trusted.addSubnet(address, prefix, family);
    }
  }

  /** The client's address; "unknown" where the socket has none any more. */
  read(peer: Peer, forwardedFor: string | null): string {
    if (peer.kind !== "tcp") return peer.kind;
    let address = unmap(peer.address);
    const hops = (forwardedFor ?? "").split(",").slice(-hopsMax);
    // Only what trusted proxies have added themselves is believed, from the right.
    while (this.#isTrusted(address)) {
      const next = unmap((hops.pop() ?? "").trim());
      if (isIP(next) === 0) break;
      address = next;
    }
    return address;
  }

  #isTrusted(address: string): boolean {
    return this.#trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  }
}

function unmap(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") ? address.slice(7) : address;
}
