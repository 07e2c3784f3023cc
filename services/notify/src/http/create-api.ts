// The HTTP API: all routes, with their limits, metrics and feeds.
import type { Service } from "@platform/chassis";
import { takeDatabaseSnapshot, type DatabaseState } from "@platform/kernel/database-backup";
import type { EgressFetch } from "@platform/kernel/egress";
import type { AdminFeeds } from "@platform/kernel/feeds";
import { BodyBudget, RateLimit, type Api } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { Analytics } from "../analytics/analytics.ts";
import { createMailCheck, type CheckMail } from "../check/mail-check.ts";
import type { NotifyConfig } from "../config.ts";
import { DATA_FORMAT, type NotifyDatabase } from "../database/schema.ts";
import type { ReportSender } from "../dmarc/report-sender.ts";
import type { DmarcReports } from "../dmarc/reports.ts";
import type { DnsResolver } from "../dns/resolver.ts";
import type { Domains } from "../domain/domains.ts";
import { createAuthentication } from "../inbound/authentication.ts";
import type { Inbound } from "../inbound/inbound.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { WebPush } from "../push/web-push.ts";
import type { QueueStore } from "../queue/store.ts";
import { createSmsReceipts } from "../relay/create-sms-gateway.ts";
import { sendsMail } from "../relay/create-transport.ts";
import type { RelaySettings } from "../relay/relay-settings.ts";
import type { SmsReceipts } from "../relay/sms/receipts.ts";
import type { SmsGateway } from "../relay/sms/sms-gateway.ts";
import type { Messages } from "../send/messages.ts";
import type { Resender } from "../send/resender.ts";
import type { Sender } from "../send/sender.ts";
import type { StoredContents } from "../send/stored-content.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { Templates } from "../template/templates.ts";
import type { Tracking } from "../tracking/tracking.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import { createAnalyticsRoutes } from "./analytics-routes.ts";
import { describeConsole } from "./console.ts";
import { createDmarcRoutes } from "./dmarc-routes.ts";
import { createDomainRoutes } from "./domain-routes.ts";
import { createFigures, QueueLength } from "./figures.ts";
import { createInboundRoutes } from "./inbound-routes.ts";
import { createInboxRoutes } from "./inbox-routes.ts";
import { createLinkRoutes } from "./link-routes.ts";
import { createMessageRoutes } from "./message-routes.ts";
import { createPushRoutes } from "./push-routes.ts";
import { createRelayRoutes } from "./relay-routes.ts";
import { createSendRoutes } from "./send-routes.ts";
import { createSmsReceiptRoutes } from "./sms-receipt-routes.ts";
import { createSuppressionRoutes } from "./suppression-routes.ts";
import { createTemplatePreviewRoutes } from "./template-preview-routes.ts";
import { createTemplateRoutes } from "./template-routes.ts";
import { createWebhookRoutes } from "./webhook-routes.ts";

/** Parts that the API uses. */
export interface NotifyApiParts {
  config: NotifyConfig;
  service: Service;
  database: NotifyDatabase;
  state: DatabaseState;
  store: QueueStore;
  sender: Sender;
  messages: Messages;
  contents: StoredContents;
  resender: Resender;
  templates: Templates;
  suppressions: Suppressions;
  webhooks: Webhooks;
  inbound: Inbound;
  domains: Domains;
  dmarcReports: DmarcReports;
  reportSender: ReportSender;
  inbox: Inbox;
  relay: RelaySettings;
  webPush: WebPush;
  /** Undefined without a gateway. */
  gateway: SmsGateway | undefined;
  unsubscribes: Unsubscribes;
  tracking: Tracking;
  /** Checks the addresses of targets. */
  fetchTarget: EgressFetch;
  dns: DnsResolver;
}

/** JSON and base64 around the attachments and texts. */
const BODY_OVERHEAD = 1.4;
const TEXT_BYTES = 12 * 1024 * 1024;

/** Creates the API and its feeds. */
export function createNotifyApi(parts: NotifyApiParts): { api: Api; feeds: AdminFeeds } {
  const { config, service, database, state, store } = parts;
  const { clock, log, lifecycle } = service;
  const queueLength = new QueueLength(() => store.countOpen());
  lifecycle.onDrain("queue length", () => queueLength.stop());
  const hasCredentials = service.verifier !== undefined;
  const hasInbox = !sendsMail(config);
  const operation = service.openOperation({
    console: describeConsole(config, { hasCredentials, hasInbox }),
    figures: createFigures(service.metrics, queueLength),
    backup: {
      dataFormat: DATA_FORMAT,
      takeSnapshot: () => takeDatabaseSnapshot(state, database),
    },
  });
  const bodyBytesMax = Math.ceil(config.attachment_bytes_max * BODY_OVERHEAD) + TEXT_BYTES;
  const rate = createSendRate(parts);
  const api = service.createApi({
    operation,
    bodyBudget: createBodyBudget(config, bodyBytesMax),
    title: "Mail",
    description: "Transactional mail, templates, bounces and suppression.",
    routes: [
      ...createSendRoutes({ sender: parts.sender, rate, bodyBytesMax }),
      ...createMessageRoutes({ ...parts, rate, checkMail: createCheck(parts) }),
      ...createTemplateRoutes(parts.templates),
      ...createTemplatePreviewRoutes({ ...parts, clock }),
      ...createSuppressionRoutes(parts.suppressions, clock),
      ...createWebhookRoutes(parts.webhooks, parts.fetchTarget),
      ...createInboundRoutes(parts.inbound),
      ...createDomainRoutes(parts.domains),
      ...createDmarcRoutes(parts.dmarcReports, parts.reportSender, clock),
      ...createInboxRoutes(hasInbox ? parts.inbox : undefined),
      ...createPushRoutes(parts.webPush),
      ...createRelayRoutes({
        ...parts,
        trialRate: createTrialRate(clock),
        onChange: (title, actor) =>
          operation.feeds.noteChange({ title, actor, href: "/ui/settings" }),
      }),
      ...createSmsReceiptRoutes({
        receipts: createReceipts(parts),
        publicUrl: config.public_url,
        clock,
      }),
      ...createLinkRoutes({ ...parts, clock, log }),
      ...createAnalyticsRoutes(new Analytics(database), clock),
    ],
  });
  return { api, feeds: operation.feeds };
}

function createCheck({ dns, config }: NotifyApiParts): CheckMail {
  return createMailCheck(createAuthentication(dns.lookup, config["smtp.hostname"]));
}

function createReceipts(parts: NotifyApiParts): SmsReceipts | undefined {
  const { gateway, config, database, webhooks, service } = parts;
  if (gateway === undefined) return undefined;
  return createSmsReceipts({ config, database, webhooks, clock: service.clock });
}

function createSendRate({ config, service }: NotifyApiParts): RateLimit | undefined {
  const { verifier, clock } = service;
  if (verifier === undefined || config.send_rate_per_minute === 0) return undefined;
  return new RateLimit({
    name: "send",
    detail: "Messages are sent faster than the limit of this client allows.",
    clock,
    ratePerSecond: config.send_rate_per_minute / 60,
    capacity: config.send_burst,
  });
}

// A test is a connection to an address of the caller's choice.
function createTrialRate(clock: Clock): RateLimit {
  const detail = "Relays are tried more often than ten times a minute.";
  return new RateLimit({ name: "trial", detail, clock, ratePerSecond: 1 / 6, capacity: 10 });
}

// A client may always send the largest message.
function createBodyBudget({ body_bytes_max: max }: NotifyConfig, largest: number): BodyBudget {
  const bytesPerClientMax = Math.max(largest, Math.floor(max / 2));
  return new BodyBudget({ bytesMax: Math.max(max, largest), bytesPerClientMax });
}
