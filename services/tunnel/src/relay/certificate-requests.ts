// Names of tunnels without a certificate: a gateway of this machine obtains one, once a handshake there has asked for the name.
import { connect } from "node:tls";
import type { ListenAddress } from "@platform/kernel/config";
import type { Clock } from "@platform/kernel/time";

const TIMEOUT_MS = 5_000;
/** The gateway refuses what is too much for its authority: the same name is tried again. */
const AGAIN_MS = 60_000;
const CONCURRENT_MAX = 4;
const NAMES_MAX = 1_000;

/** Options of {@link CertificateRequests}. */
export interface CertificateRequestsOptions {
  /** TLS listener of the gateway, whose `auto_tls_ask_url` is that of this relay. */
  gateway: ListenAddress;
  clock: Clock;
  /** True for names that may have a certificate. */
  exists: (name: string) => boolean;
  /** True for names that have one. */
  isServed: (name: string) => boolean;
}

/** Begins a handshake with the gateway for each name, which fails: the gateway then asks the relay, and orders. */
export class CertificateRequests {
  readonly #options: CertificateRequestsOptions;
  /** Times of the last requests, the oldest first. */
  readonly #asked = new Map<string, number>();
  #active = 0;

  constructor(options: CertificateRequestsOptions) {
    this.#options = options;
  }

  /** Notes that the name of a tunnel is used. */
  note(name: string): void {
    const { clock, exists, isServed } = this.#options;
    const now = clock.monotonicMs();
    const askedAt = this.#asked.get(name) ?? -Infinity;
    if (now - askedAt < AGAIN_MS || this.#active >= CONCURRENT_MAX) return;
    if (!exists(name) || isServed(name)) return;
    this.#asked.delete(name);
    this.#asked.set(name, now);
    const [oldest] = this.#asked.keys();
    if (this.#asked.size > NAMES_MAX && oldest !== undefined) this.#asked.delete(oldest);
    this.#greet(name);
  }

  #greet(servername: string): void {
    const { host = "127.0.0.1", port } = this.#options.gateway;
    this.#active += 1;
    // Nothing is sent: only the name of the handshake counts.
    const socket = connect({ host, port, servername, rejectUnauthorized: false });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
    socket.once("secureConnect", () => socket.destroy());
    socket.on("error", () => undefined);
    socket.once("close", () => (this.#active -= 1));
  }
}
