// How many connections a listener holds: in all, and of one address.

/** Bounds of a listener. */
export interface ConnectionBoundsOptions {
  /** Connections at a time. */
  connectionsMax: number;
  /** Connections at a time of one IPv4 address or one IPv6 network of 64 bits; default half of `connectionsMax`, rounded up. */
  perAddressMax?: number | undefined;
  /** Addresses that only the bound on all connections applies to: proxies, which speak for many clients. */
  isExempt?: ((address: string) => boolean) | undefined;
}

/** Whether a connection may stay, or which bound it exceeds. */
export type Admission = "admitted" | "too-many" | "too-many-of-address";

/** Counts connections; each that was admitted must be released. */
export class ConnectionBounds {
  #connectionsMax = 0;
  #perAddressMax = 0;
  readonly #isExempt: (address: string) => boolean;
  readonly #byNetwork = new Map<string, number>();
  #open = 0;

  constructor(options: ConnectionBoundsOptions) {
    this.resize(options);
    this.#isExempt = options.isExempt ?? (() => false);
  }

  /** Changes the bounds; connections that were admitted stay. */
  resize(options: Pick<ConnectionBoundsOptions, "connectionsMax" | "perAddressMax">): void {
    const { connectionsMax } = options;
    this.#connectionsMax = connectionsMax;
    this.#perAddressMax = options.perAddressMax ?? Math.ceil(connectionsMax / 2);
  }

  /** Connections that were admitted and not released. */
  get open(): number {
    return this.#open;
  }

  /** Counts a connection if it may stay. `address` is the peer's as sockets report it; `""` stands for a Unix socket. */
  admit(address: string): Admission {
    if (this.#open >= this.#connectionsMax) return "too-many";
    const network = toNetwork(address);
    const count = this.#byNetwork.get(network) ?? 0;
    if (count >= this.#perAddressMax && network !== "" && !this.#isExempt(address)) {
      return "too-many-of-address";
    }
    this.#open++;
    this.#byNetwork.set(network, count + 1);
    return "admitted";
  }

  /** An admitted connection of this address has closed. */
  release(address: string): void {
    const network = toNetwork(address);
    const count = this.#byNetwork.get(network) ?? 0;
    this.#open--;
    if (count > 1) this.#byNetwork.set(network, count - 1);
    else this.#byNetwork.delete(network);
  }
}

/** The address itself for IPv4, its first 64 bits for IPv6: that much belongs to one subscriber (RFC 6177). */
function toNetwork(address: string): string {
  if (!address.includes(":")) return address;
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const rest = tail === "" ? [] : tail.split(":");
    while (groups.length + rest.length < 8) groups.push("0");
    groups.push(...rest);
  }
  return `${groups.slice(0, 4).join(":")}::`;
}
