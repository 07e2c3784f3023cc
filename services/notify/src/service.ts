// Starts the mail service: the order of its parts.
import { openService, type Service, type ServiceLifecycle } from "@platform/chassis";
import type { Logger } from "@platform/kernel/log";
import { sweepEvery, type Clock } from "@platform/kernel/time";
import { openDelivery, type Delivery } from "./assembly/delivery.ts";
import { openInbound, type InboundParts } from "./assembly/inbound.ts";
import { openLinks } from "./assembly/links.ts";
import { openOutcomes, type Outcomes } from "./assembly/outcomes.ts";
import { openSenders, type Senders } from "./assembly/senders.ts";
import { openSending, type Sending } from "./assembly/sending.ts";
import { openRelay, openStorage } from "./assembly/storage.ts";
import { pickSmtpCertificates } from "./certificates.ts";
import { VERSION, type NotifyConfig } from "./config.ts";
import type { NotifyDatabase } from "./database/schema.ts";
import { createNotifyApi } from "./http/create-api.ts";
import { startListener } from "./http/listener.ts";

const SWEEP_MS = 60_000;

/** Options of `startNotify`. */
export interface NotifyOptions {
  config: NotifyConfig;
  /** Source of each key of the configuration. Default: unknown. */
  sources?: ReadonlyMap<string, string> | undefined;
  log: Logger;
  lifecycle: ServiceLifecycle;
  clock?: Clock;
}

/** A running service. */
export interface NotifyService {
  /** The address of the API. */
  readonly url: string;
  readonly database: NotifyDatabase;
  /** Looks for due deliveries now. */
  refill(): Promise<void>;
  /** Calls due webhooks now. */
  callWebhooks(): Promise<void>;
  /** Sends due DMARC reports now. */
  sendReports(): Promise<void>;
}

/** Starts the service; when this resolves, it accepts requests. */
export async function startNotify(options: NotifyOptions): Promise<NotifyService> {
  const { log, lifecycle, clock } = options;
  const { token } = options.config;
  const operatorToken = token && lifecycle.followSecret("PLATFORM_NOTIFY_TOKEN", token);
  const base = { name: "notify", version: VERSION, config: options.config, operatorToken };
  const service = openService({ ...base, log, lifecycle, clock });
  const smtpCertificates = pickSmtpCertificates(options.config, service);
  const storage = await openStorage(options.config, service);
  const relay = await openRelay(options.config, options.sources, service, storage);
  const { config } = relay;
  const outcomes = await openOutcomes(config, service, storage);
  const senders = await openSenders(config, service, storage);
  const links = await openLinks(config, service, storage, outcomes);
  const delivery = await openDelivery(config, service, storage, outcomes, senders, links);
  relay.onChange(delivery.replaceRelay);
  const reception = openInbound(config, service, smtpCertificates, storage, outcomes, senders);
  const sending = openSending(config, service, storage, outcomes, senders, links, delivery);
  const parts = { ...storage, ...outcomes, ...senders, ...links };
  const { api, feeds } = createNotifyApi({
    config,
    service,
    relay,
    ...parts,
    ...delivery,
    ...reception,
    ...sending,
  });
  startSweeps(service, { ...outcomes, ...senders, ...delivery, ...reception, ...sending });
  outcomes.caller.start();
  await reception.inbound.start(lifecycle);
  const listener = await startListener(config, service, { ...api, onUpgrade: feeds.onUpgrade });
  links.setListenerUrl(listener.url);
  // Links of queued messages may depend on the address of the listener.
  delivery.dispatcher.start();
  if (config.dmarc_reports && config.from_domain !== undefined) sending.reportSender.start();
  service.setReady();
  return {
    url: listener.url,
    database: storage.database,
    refill: () => delivery.dispatcher.refill(),
    callWebhooks: () => outcomes.caller.run(),
    sendReports: () => sending.reportSender.run(),
  };
}

// Deletes what has expired.
function startSweeps(
  { log, lifecycle }: Service,
  parts: Outcomes & Senders & Delivery & InboundParts & Sending,
): void {
  const { messages, idempotency, inbox, webhooks, inbound, domains, dmarcReports } = parts;
  const sweeps = sweepEvery(
    SWEEP_MS,
    {
      messages: () => messages.sweep(),
      idempotency: () => idempotency.sweep(),
      inbox: () => inbox.sweep(),
      webhooks: () => webhooks.sweep(),
      inbound: () => inbound.sweep(),
      domains: () => domains.sweep(),
      dmarc_reports: () => dmarcReports.sweep(),
      web_push: () => parts.webPush.subscriptions.sweep(),
    },
    (error, sweep) => log.warn("deleting expired rows failed", { error, sweep }),
  );
  lifecycle.onDrain("sweeps", () => sweeps.stop());
}
