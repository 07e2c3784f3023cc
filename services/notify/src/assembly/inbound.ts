// Inbound mail with the reports that it brings: bounces, complaints, aggregate reports.
import type { Service } from "@platform/chassis";
import type { CertificateWatch } from "@platform/kernel/tls";
import { BounceReports } from "../bounce/bounce-reports.ts";
import type { NotifyConfig } from "../config.ts";
import { DmarcReports } from "../dmarc/reports.ts";
import { Inbound } from "../inbound/inbound.ts";
import type { Outcomes } from "./outcomes.ts";
import type { Senders } from "./senders.ts";
import type { Storage } from "./storage.ts";

export interface InboundParts {
  readonly inbound: Inbound;
  readonly dmarcReports: DmarcReports;
}

/** Creates the parts; `certificates` are those of STARTTLS. The listener is not started. */
export function openInbound(
  config: NotifyConfig,
  service: Service,
  certificates: CertificateWatch | undefined,
  { database, box, leaseMark }: Storage,
  { suppressions, webhooks, metrics, fetchTarget: fetch }: Outcomes,
  { dns, bounceAddresses: addresses, isOwnDomain }: Senders,
): InboundParts {
  const { tracer, clock, ids, log } = service;
  const bounceReports =
    addresses === undefined
      ? undefined
      : new BounceReports({ database, addresses, suppressions, webhooks, metrics, clock, log });
  const dmarcReports = new DmarcReports({ database, clock, isOwnDomain });
  const inbound = new Inbound({
    config,
    database,
    leaseMark,
    certificates,
    box,
    bounceReports,
    isOwnDomain,
    readAggregate: (row, content) => dmarcReports.read(row, content),
    lookup: dns.lookup,
    fetch,
    metrics,
    tracer,
    clock,
    ids,
    log,
  });
  return { inbound, dmarcReports };
}
