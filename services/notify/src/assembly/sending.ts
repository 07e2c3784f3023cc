// Sending: from the request to the queue, and what is known of messages afterwards.
import type { Service } from "@platform/chassis";
import type { NotifyConfig } from "../config.ts";
import { ReportSender } from "../dmarc/report-sender.ts";
import { createAlignmentCheck } from "../domain/alignment.ts";
import { collectGauges } from "../metrics.ts";
import { sendsMail } from "../relay/create-transport.ts";
import { Acceptance } from "../send/acceptance.ts";
import { Idempotency } from "../send/idempotency.ts";
import { Messages } from "../send/messages.ts";
import { Resender } from "../send/resender.ts";
import { sendReport } from "../send/send-report.ts";
import { Sender } from "../send/sender.ts";
import { StoredContents } from "../send/stored-content.ts";
import { SuppressionCheck } from "../send/suppression-check.ts";
import { TemplateStore } from "../template/store.ts";
import { Templates } from "../template/templates.ts";
import type { Delivery } from "./delivery.ts";
import type { Links } from "./links.ts";
import type { Outcomes } from "./outcomes.ts";
import { listDomains, type Senders } from "./senders.ts";
import type { Storage } from "./storage.ts";

/** The parts. */
export interface Sending {
  readonly templates: Templates;
  readonly idempotency: Idempotency;
  readonly sender: Sender;
  readonly messages: Messages;
  readonly contents: StoredContents;
  readonly resender: Resender;
  readonly reportSender: ReportSender;
}

/** Creates the parts. */
export function openSending(
  config: NotifyConfig,
  service: Service,
  { database }: Storage,
  { suppressions, metrics, store }: Outcomes,
  { dns, domains }: Senders,
  { tracking, unsubscribes }: Links,
  { dispatcher, prepare, webPush, gateway }: Delivery,
): Sending {
  const { tracer, clock, ids, log, lifecycle } = service;
  const templates = new Templates(new TemplateStore(database, clock), clock);
  lifecycle.onDrain("templates", () => templates.close());
  collectGauges(service.metrics, { templates: templates.store, queue: store });
  const idempotency = new Idempotency(database, clock);
  const acceptance = new Acceptance({
    store,
    dispatcher,
    clock,
    log,
    waitMs: config.send_wait_ms,
    bodyRetentionMs: config.body_retention_ms,
    queueMax: config.queue_max,
  });
  const suppressionCheck = new SuppressionCheck({ suppressions, metrics, tracer });
  const sendsToRelay = sendsMail(config);
  const sender = new Sender({
    acceptance,
    suppressions: suppressionCheck,
    idempotency,
    templates,
    metrics,
    tracer,
    clock,
    ids,
    fromDomain: config.from_domain ?? (sendsToRelay ? undefined : "localhost"),
    allowedDomains: limitsDomains(config) ? () => domains.names : undefined,
    checkAlignment: createAlignmentCheck({
      mode: sendsToRelay ? config.dmarc_alignment : "off",
      domains,
      clock,
      log,
    }),
    unsubscribes,
    tracking,
    subscriptions: webPush.subscriptions,
    hasSms: gateway !== undefined || !sendsToRelay,
    attachmentBytesMax: config.attachment_bytes_max,
  });
  const retentionMs = config.message_retention_ms;
  const messages = new Messages({ database, dispatcher, clock, retentionMs });
  const contents = new StoredContents({ database, messages, prepare });
  const resender = new Resender({
    acceptance,
    contents,
    idempotency,
    sender,
    suppressions: suppressionCheck,
    clock,
    ids,
    log,
  });
  const reportSender = new ReportSender({
    database,
    clock,
    log,
    orgName: config.from_domain ?? "localhost",
    readTexts: (name) => dns.readTexts(name),
    send: (mail) => sendReport(sender, tracer, mail),
  });
  lifecycle.onDrain("reports to other domains", () => reportSender.stop());
  return { templates, idempotency, sender, messages, contents, resender, reportSender };
}

/** True if clients may send from known domains only: they are users of the platform, and mail leaves it. */
function limitsDomains(config: NotifyConfig): boolean {
  // Without a relay and a domain, messages only reach the development inbox.
  const isTrial = !sendsMail(config) && listDomains(config).size === 0;
  const isIntegrated = config.jwt_secret !== undefined || config.jwks_url !== undefined;
  return isIntegrated && !isTrial;
}
