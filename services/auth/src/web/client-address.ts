// Who a request comes from: the socket's peer, or behind a trusted proxy the last address that is not one.
import type { Peer } from "@platform/kernel/http";
import { AddressSet, findClientAddress } from "@platform/kernel/network";

/** Reads addresses. */
export class ClientAddress {
  readonly #trusted: AddressSet;

  /** `trusted` are addresses and CIDR ranges. */
  constructor(trusted: readonly string[]) {
    this.#trusted = new AddressSet(trusted);
  }

  /** Whether an address is a trusted proxy's. */
  isProxy(address: string): boolean {
    return this.#trusted.has(address);
  }

  /** The client's address; what the connection is where that has none. */
  read(peer: Peer, forwardedFor: string | null): string {
    if (peer.kind !== "tcp") return peer.kind;
    return unmap(findClientAddress(peer.address, forwardedFor ?? "", this.#trusted));
  }
}

function unmap(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") ? address.slice(7) : address;
}
