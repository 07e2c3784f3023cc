// The names that mail is sent from and bounces return to, and their records in DNS.
import type { Service } from "@platform/chassis";
import { createBounceAddresses, type BounceAddresses } from "../bounce/bounce-address.ts";
import type { NotifyConfig } from "../config.ts";
import { DnsResolver } from "../dns/resolver.ts";
import { Domains } from "../domain/domains.ts";
import type { Storage } from "./storage.ts";

/** The parts. */
export interface Senders {
  readonly dns: DnsResolver;
  readonly domains: Domains;
  /** Undefined if bounces are not received. */
  readonly bounceAddresses: BounceAddresses | undefined;
  /** True if mail may be sent from the domain. */
  readonly isOwnDomain: (domain: string) => boolean;
}

/** Loads the domains. */
export async function openSenders(
  config: NotifyConfig,
  { clock }: Service,
  { database, box }: Storage,
): Promise<Senders> {
  const dns = new DnsResolver({ servers: config.dns_servers, clock });
  const domains = new Domains({
    database,
    box,
    clock,
    lookup: dns.lookupNow,
    configured: listDomains(config),
    mailHost: config.inbound_port === undefined ? undefined : config["smtp.hostname"],
  });
  await domains.load();
  return {
    dns,
    domains,
    bounceAddresses: await createBounceAddresses(config, database, box),
    isOwnDomain: (domain) => domains.names.has(domain),
  };
}

/** The configured domains. */
export function listDomains({ from_domain, from_domains }: NotifyConfig): ReadonlySet<string> {
  return new Set(from_domain === undefined ? from_domains : [from_domain, ...from_domains]);
}
