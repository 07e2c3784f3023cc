// Public URLs of tunnels and of the relay.
import { type RelayConfig, usesTls } from "../config.ts";

/** Public URLs of tunnels. */
export class PublicUrls {
  /** Actual port of the listener. */
  port = 0;
  readonly #config: RelayConfig;

  constructor(config: RelayConfig) {
    this.#config = config;
  }

  /** Of the bare domain. */
  get origin(): URL {
    const { domain, public_url: publicUrl } = this.#config;
    const scheme = usesTls(this.#config) ? "https" : "http";
    return new URL(publicUrl ?? `${scheme}://${domain}:${this.port}`);
  }

  format(tunnel: { subdomain: string | null; port: number | null }): string {
    const { domain } = this.#config;
    if (tunnel.port !== null) return `tcp://${domain}:${tunnel.port}`;
    const base = this.origin;
    const port = base.port === "" ? "" : `:${base.port}`;
    return `${base.protocol}//${tunnel.subdomain ?? ""}.${domain}${port}`;
  }
}
