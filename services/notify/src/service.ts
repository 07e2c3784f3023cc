// Starts the mail service: creates all parts and connects them.
import { clearDatabaseCopies, takeDatabaseSnapshot } from "@platform/kernel/backup";
import { createIdSource } from "@platform/kernel/ids";
import { createConfiguredVerifier, followRevocations } from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { sweepEvery, systemClock, type Clock } from "@platform/kernel/time";
import { openCertificates } from "./certificates.ts";
import { Analytics } from "./analytics/analytics.ts";
import { createBounceAddresses } from "./bounce/bounce-address.ts";
import { BounceReports } from "./bounce/bounce-reports.ts";
import { BounceRateAlarm } from "./bounce/rate-alarm.ts";
import { createMailCheck } from "./check/mail-check.ts";
import type { NotifyConfig } from "./config.ts";
import { openNotifyDatabase } from "./database/open.ts";
import { migrateAll, type NotifyDatabase } from "./database/schema.ts";
import { openSecretBox, readKey } from "./database/secrets.ts";
import { describeState } from "./database/state.ts";
import { ReportSender } from "./dmarc/report-sender.ts";
import { DmarcReports } from "./dmarc/reports.ts";
import { DnsResolver } from "./dns/resolver.ts";
import { createAlignmentCheck } from "./domain/alignment.ts";
import { Domains } from "./domain/domains.ts";
import { createNotifyApi } from "./http/create-api.ts";
import { startListener } from "./http/listener.ts";
import { createAuthentication } from "./inbound/authentication.ts";
import { Inbound } from "./inbound/inbound.ts";
import { Inbox } from "./inbox/inbox.ts";
import { SignedLinks } from "./link/signed-links.ts";
import { createWebPush } from "./push/web-push.ts";
import { createNotifyMetrics } from "./metrics.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { ResultRecorder } from "./queue/result-recorder.ts";
import { findSuppressed } from "./queue/suppressed.ts";
import { QueueStore } from "./queue/store.ts";
import { createSmsGateway, createSmsReceipts } from "./relay/create-sms-gateway.ts";
import { createMailTransport } from "./relay/create-transport.ts";
import { createPrepareMail } from "./relay/prepare.ts";
import { Acceptance } from "./send/acceptance.ts";
import { Idempotency } from "./send/idempotency.ts";
import { Messages } from "./send/messages.ts";
import { Resender } from "./send/resender.ts";
import { sendReport } from "./send/send-report.ts";
import { Sender } from "./send/sender.ts";
import { StoredContents } from "./send/stored-content.ts";
import { SuppressionCheck } from "./send/suppression-check.ts";
import { Suppressions } from "./suppression/suppressions.ts";
import { TemplateStore } from "./template/store.ts";
import { Templates } from "./template/templates.ts";
import { Tracking } from "./tracking/tracking.ts";
import { createTelemetry } from "./telemetry.ts";
import { Unsubscribes } from "./unsubscribe/unsubscribes.ts";
import { createWebhooks } from "./webhook/create-webhooks.ts";

const SWEEP_MS = 60_000;
/** Time kept of the drain to give back what was not delivered. */
const RELEASE_MS = 2_000;

/** Options of `startNotify`. */
export interface NotifyOptions {
  config: NotifyConfig;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "onReload" | "reportListener" | "stopping">;
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
  const { config, log, lifecycle, clock = systemClock } = options;
  const bound: { url?: string } = {};
  const certificates = openCertificates(config, log);
  const ids = createIdSource({ clock });
  const database = openNotifyDatabase({
    url: config.database_url,
    dataDir: config.data_dir,
    log,
  });
  lifecycle.onDrain("database", () => database.close());
  await migrateAll(database, clock.now());
  const state = describeState(config);
  await clearDatabaseCopies(state);
  const box = await openSecretBox(database, {
    keys: config.encryption_keys,
    dataDir: config.data_dir,
  });

  const { registry, tracer, health, close } = createTelemetry({ config, log, ids, clock });
  lifecycle.onDrain("telemetry", close);
  health.addCheck("database", () => database.check());

  const suppressions = new Suppressions(database);
  const templates = new Templates(new TemplateStore(database, clock), clock);
  lifecycle.onDrain("templates", () => templates.close());
  const metrics = createNotifyMetrics(registry, {
    countTemplates: () => templates.store.count(),
    countQueued: () => store.countOpen(),
  });
  const { webhooks, caller, fetchTarget } = createWebhooks({
    config,
    database,
    box,
    tracer,
    clock,
    ids,
    log,
  });
  lifecycle.onDrain("webhooks", () => caller.stop());
  const alarm = new BounceRateAlarm({ clock, rateMax: config.bounce_rate_max });
  health.addWarning("bounce_rate", () => alarm.describe());
  const recorder = new ResultRecorder({ suppressions, webhooks, alarm, metrics, clock, log });
  const store = new QueueStore({
    database,
    clock,
    onResults: (trx, results) => recorder.record(trx, results),
  });
  if (database.kind === "sqlite") await store.releaseAll(clock.now());

  const inbox = new Inbox({
    database,
    clock,
    messagesMax: config.inbox_messages_max,
    retentionMs: config.inbox_retention_ms,
    fieldsOf: (delivery) => unsubscribes.formatFields(delivery),
  });
  const links = new SignedLinks({
    key: await readKey(database, box, "link_key"),
    publicUrl: () => config.public_url ?? (relays === undefined ? bound.url : undefined),
  });
  const tracking = new Tracking({
    database,
    links,
    webhooks,
    metrics,
    opens: config.track_opens,
    clicks: config.track_clicks,
  });
  const unsubscribes = new Unsubscribes({
    database,
    links,
    suppressions,
    webhooks,
    metrics,
    clock,
    log,
  });
  const bounceAddresses = await createBounceAddresses(config, database, box);
  const bounceReports =
    bounceAddresses === undefined
      ? undefined
      : new BounceReports({
          database,
          addresses: bounceAddresses,
          suppressions,
          webhooks,
          metrics,
          clock,
          log,
        });
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
  const isOwnDomain = (domain: string): boolean => domains.names.has(domain);
  const dmarcReports = new DmarcReports({ database, clock, isOwnDomain });
  const inbound = new Inbound({
    config,
    database,
    certificates: certificates.smtp,
    box,
    bounceReports,
    isOwnDomain,
    readAggregate: (row, content) => dmarcReports.read(row, content),
    lookup: dns.lookup,
    fetch: fetchTarget,
    metrics,
    tracer,
    clock,
    ids,
    log,
  });
  const prepare = createPrepareMail({
    sign: (content, domain) => domains.sign(content, domain),
    fieldsOf: (delivery) => unsubscribes.formatFields(delivery),
    senderOf: ({ message, position }) =>
      bounceAddresses?.format({ messageId: message.id, position }, clock.now()) ?? message.sender,
  });
  const relays = createMailTransport({ config, dns, prepare, clock });
  const gateway = createSmsGateway(config, tracer);
  const webPush = await createWebPush({
    config,
    database,
    box,
    fetch: fetchTarget,
    clock,
    ids,
    log,
  });
  if (relays === undefined) {
    log.warn("mail is not sent: it is kept in the development inbox");
  } else {
    lifecycle.onDrain("relays", () => relays.close());
  }
  const dispatcher: Dispatcher = new Dispatcher({
    store,
    transports: { email: relays ?? inbox, sms: gateway ?? inbox, push: webPush.delivery },
    findSuppressed: (deliveries) => findSuppressed(suppressions, deliveries),
    onResult: (result) => {
      recorder.observe(result);
      acceptance.noteResult(result);
    },
    clock,
    log,
    random: Math.random,
    concurrencyMax: config["smtp.connections_max"],
    destinationConcurrencyMax: config["smtp.destination_connections_max"],
    ratePerSecond: config["smtp.destination_rate"],
    retryMs: config.retry_ms,
  });
  lifecycle.onDrain("queue", (drain) =>
    dispatcher.stop(Math.max(0, drain.remainingMs() - RELEASE_MS)),
  );
  const idempotency = new Idempotency(database, clock);
  const followed = followRevocations({ config, clock, log, metrics: registry });
  lifecycle.onDrain("revocations", () => followed.stop());
  health.addWarning("revocations", followed.describe);
  const verifier = createConfiguredVerifier({
    config,
    operatorToken: config.token,
    revocations: followed.revocations,
    clock,
    log,
  });
  // Without a relay and a domain, messages only reach the development inbox.
  const isTrial = relays === undefined && listDomains(config).size === 0;
  const isIntegrated = config.jwt_secret !== undefined || config.jwks_url !== undefined;
  const acceptance: Acceptance = new Acceptance({
    store,
    dispatcher,
    clock,
    log,
    waitMs: config.send_wait_ms,
    bodyRetentionMs: config.body_retention_ms,
    queueMax: config.queue_max,
  });
  const suppressionCheck = new SuppressionCheck({ suppressions, metrics, tracer });
  const sender = new Sender({
    acceptance,
    suppressions: suppressionCheck,
    idempotency,
    templates,
    metrics,
    tracer,
    clock,
    ids,
    fromDomain: config.from_domain ?? (relays === undefined ? "localhost" : undefined),
    allowedDomains: isIntegrated && !isTrial ? () => domains.names : undefined,
    checkAlignment: createAlignmentCheck({
      mode: relays === undefined ? "off" : config.dmarc_alignment,
      domains,
      clock,
      log,
    }),
    unsubscribes,
    tracking,
    subscriptions: webPush.subscriptions,
    hasSms: gateway !== undefined || relays === undefined,
    attachmentBytesMax: config.attachment_bytes_max,
  });
  const messages = new Messages({
    database,
    dispatcher,
    clock,
    retentionMs: config.message_retention_ms,
  });
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
  const { api, feeds } = createNotifyApi({
    config,
    verifier,
    registry,
    health,
    tracer,
    clock,
    log,
    lifecycle,
    countOpen: () => store.countOpen(),
    takeSnapshot: () => takeDatabaseSnapshot(state, database),
    sender,
    messages,
    contents,
    resender,
    checkMail: createMailCheck(createAuthentication(dns.lookup, config["smtp.hostname"])),
    templates,
    suppressions,
    webhooks,
    inbound,
    domains,
    dmarcReports,
    reportSender,
    inbox: relays === undefined ? inbox : undefined,
    webPush,
    smsReceipts:
      gateway === undefined ? undefined : createSmsReceipts({ config, database, webhooks, clock }),
    unsubscribes,
    tracking,
    analytics: new Analytics(database),
    fetchTarget,
  });
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
      web_push: () => webPush.subscriptions.sweep(),
    },
    (error, sweep) => log.warn("deleting expired rows failed", { error, sweep }),
  );
  lifecycle.onDrain("sweeps", () => sweeps.stop());

  if (database.kind === "sqlite") await webhooks.releaseAll(clock.now());
  caller.start();
  await inbound.start(lifecycle);
  const listener = await startListener({
    config,
    api,
    feeds,
    metrics: registry,
    hasCredentials: verifier !== undefined,
    tls: certificates.http?.current.pairs[0],
  });
  certificates.http?.follow(lifecycle, ({ pairs: [pair] }) => listener.setTls(pair!));
  bound.url = listener.url;
  // Links of queued messages may depend on the address of the listener.
  dispatcher.start();
  lifecycle.onDrain("http", (drain) =>
    listener.close(Math.max(0, drain.remainingMs() - RELEASE_MS)),
  );
  // Before the listener, which waits for its connections.
  lifecycle.onDrain("admin feeds", () => feeds.close());
  feeds.start();
  if (config.dmarc_reports && config.from_domain !== undefined) reportSender.start();
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  const name = certificates.http === undefined ? "http" : "https";
  lifecycle.reportListener({ name, host: listener.host, port: listener.port });
  return {
    url: listener.url,
    database,
    refill: () => dispatcher.refill(),
    callWebhooks: () => caller.run(),
    sendReports: () => reportSender.run(),
  };
}

function listDomains({ from_domain, from_domains }: NotifyConfig): ReadonlySet<string> {
  return new Set(from_domain === undefined ? from_domains : [from_domain, ...from_domains]);
}
