// Who a request comes from: the socket's peer, or behind a trusted proxy the last address that is not one.
import type { HeaderReader, Peer } from "@platform/kernel/http";
import { AddressSet, findClientAddress } from "@platform/kernel/network";
import type { Origin } from "../session/sessions.ts";

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

  /** The address and the user agent of a request's client; the kind of the connection if it has no address. */
  readOrigin(peer: Peer, headers: HeaderReader): Origin {
    const forwardedFor = headers.get("x-forwarded-for") ?? "";
    const ip =
      peer.kind === "tcp"
        ? unmap(findClientAddress(peer.address, forwardedFor, this.#trusted))
        : peer.kind;
    return { ip, userAgent: headers.get("user-agent") ?? "" };
  }
}

function unmap(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") ? address.slice(7) : address;
}
