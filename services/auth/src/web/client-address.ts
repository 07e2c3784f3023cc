// The client address of a request: the socket's peer, or behind trusted proxies the last untrusted address.
import type { HeaderReader, Peer } from "@platform/kernel/http";
import { AddressSet, findClientAddress } from "@platform/kernel/network";
import type { Origin } from "../session/sessions.ts";

/** Determines client addresses. */
export class ClientAddress {
  readonly #trusted: AddressSet;

  /** `trusted` are addresses and CIDR ranges of proxies. */
  constructor(trusted: readonly string[]) {
    this.#trusted = new AddressSet(trusted);
  }

  /** True if the address belongs to a trusted proxy. */
  isProxy(address: string): boolean {
    return this.#trusted.has(address);
  }

  /** The address and the user agent of a request's client; the kind of the connection if it has no address. */
  readOrigin(peer: Peer, headers: HeaderReader): Origin {
    const forwardedFor = headers.get("x-forwarded-for") ?? "";
    const forwarded = headers.get("forwarded") ?? "";
    const ip =
      peer.kind === "tcp"
        ? unmap(findClientAddress(peer.address, forwardedFor, this.#trusted, forwarded))
        : peer.kind;
    return { ip, userAgent: headers.get("user-agent") ?? "" };
  }
}

function unmap(address: string): string {
  return address.toLowerCase().startsWith("::ffff:") ? address.slice(7) : address;
}
