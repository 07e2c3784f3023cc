// Delivery without a relay: to the mail exchangers of the recipient's domain.
import type { Delivery, Outcome, RelayReply, Transport } from "../../delivery.ts";
import type { PrepareMail } from "../prepare.ts";
import { SmtpServer, type SmtpServerOptions } from "../smtp/server.ts";
import { allowsExchanger, type StsPolicies, type StsPolicy } from "./mta-sts.ts";
import type { MailExchanger, MxResolver } from "./mx.ts";

/** Options of {@link DirectDelivery}. */
export interface DirectDeliveryOptions {
  resolver: MxResolver;
  policies: StsPolicies;
  prepare: PrepareMail;
  port: number;
  /** Options of the connections. */
  server: Omit<SmtpServerOptions, "endpoint">;
  /** Trusted certificate authorities in PEM; undefined for the default ones. */
  ca: readonly string[] | undefined;
}

/** Servers with open connections or in use. */
const SERVERS_MAX = 1_000;

/** Delivers to mail exchangers. Each domain is a destination. */
export class DirectDelivery implements Transport {
  readonly #options: DirectDeliveryOptions;
  readonly #servers = new Map<string, SmtpServer>();

  constructor(options: DirectDeliveryOptions) {
    this.#options = options;
  }

  destinationOf(domain: string): string {
    return domain;
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
    const { resolver, policies } = this.#options;
    const { domain } = delivery;
    const [found, policy] = await Promise.all([resolver.resolve(domain), policies.find(domain)]);
    switch (found.kind) {
      case "found":
        return this.#tryAll(delivery, found.exchangers, policy, signal);
      case "refuses":
        return reject("5.1.10", `the domain ${domain} accepts no mail (null MX)`);
      case "missing":
        return reject("5.1.2", `the domain ${domain} does not exist, or has no mail server`);
      case "forbidden":
        return reject("5.4.4", `the mail servers of ${domain} have private addresses`);
      case "failed":
        return defer({ relay: "", text: found.reason });
      default:
        return found satisfies never;
    }
  }

  close(): void {
    for (const server of this.#servers.values()) server.close();
  }

  async #tryAll(
    delivery: Delivery,
    exchangers: readonly MailExchanger[],
    policy: StsPolicy | undefined,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { envelope, parts } = await this.#options.prepare(delivery);
    const isEnforced = policy?.mode === "enforce";
    let last: RelayReply = { relay: "", text: "no mail server is allowed by the MTA-STS policy" };
    for (const { host, addresses } of exchangers) {
      if (isEnforced && !allowsExchanger(policy, host)) continue;
      for (const address of addresses) {
        const server = this.#open(host, address, isEnforced);
        const outcome = await server.send(envelope, parts, signal);
        if (outcome.kind !== "unreachable") return outcome;
        last = { ...outcome.reply, relay: host };
        if (signal.aborted) return defer(last);
      }
    }
    return defer(last);
  }

  #open(host: string, address: string, isEnforced: boolean): SmtpServer {
    const key = `${host}\n${address}\n${isEnforced}`;
    const known = this.#servers.get(key);
    if (known !== undefined) {
      this.#servers.delete(key);
      this.#servers.set(key, known);
      return known;
    }
    const { server: options, port, ca } = this.#options;
    const tls = isEnforced ? ("required" as const) : ("opportunistic" as const);
    const endpoint = { host: address, port, tls, ca, servername: host };
    const opened = new SmtpServer({ ...options, endpoint });
    this.#servers.set(key, opened);
    if (this.#servers.size > SERVERS_MAX) {
      const [oldest, server] = this.#servers.entries().next().value!;
      this.#servers.delete(oldest);
      server.close();
    }
    return opened;
  }
}

function reject(enhanced: string, text: string): Outcome {
  return { kind: "rejected", cause: "recipient", reply: { relay: "", code: 550, enhanced, text } };
}

function defer(reply: RelayReply): Outcome {
  return { kind: "deferred", cause: "relay", reply, mayHaveArrived: false };
}
