// Limits of a listener's connections: in total and per address.
import { findSubscriberNetwork } from "../network/index.ts";

/** Options of {@link ConnectionBounds}. */
export interface ConnectionBoundsOptions {
  /** Maximum number of connections. */
  connectionsMax: number;
  /**
   * Maximum number of connections of an IPv4 address or an IPv6 /64 network; default: half of `connectionsMax`, rounded
   * up.
   */
  perAddressMax?: number | undefined;
  /** Addresses exempt from the limit per address: proxies, which have many clients. */
  isExempt?: ((address: string) => boolean) | undefined;
}

/** Result of an admission: admitted, or the exceeded limit. */
export type Admission = "admitted" | "too-many" | "too-many-of-address";

/** Counts connections; admitted ones must be released. */
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

  /** Changes the limits; admitted connections stay. */
  resize(options: Pick<ConnectionBoundsOptions, "connectionsMax" | "perAddressMax">): void {
    const { connectionsMax } = options;
    this.#connectionsMax = connectionsMax;
    this.#perAddressMax = options.perAddressMax ?? Math.ceil(connectionsMax / 2);
  }

  /** Number of admitted connections. */
  get open(): number {
    return this.#open;
  }

  /** Admits and counts a connection. `address` is the socket's peer; `""` for a Unix socket. */
  admit(address: string): Admission {
    if (this.#open >= this.#connectionsMax) return "too-many";
    const network = findSubscriberNetwork(address);
    const count = this.#byNetwork.get(network) ?? 0;
    if (count >= this.#perAddressMax && network !== "" && !this.#isExempt(address)) {
      return "too-many-of-address";
    }
    this.#open++;
    this.#byNetwork.set(network, count + 1);
    return "admitted";
  }

  /** Releases an admitted connection of this address. */
  release(address: string): void {
    const network = findSubscriberNetwork(address);
    const count = this.#byNetwork.get(network) ?? 0;
    this.#open--;
    if (count > 1) this.#byNetwork.set(network, count - 1);
    else this.#byNetwork.delete(network);
  }
}
