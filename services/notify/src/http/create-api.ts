// The HTTP API: all routes, with their limits, metrics and feeds.
import { createBackupRoute, type Snapshot } from "@platform/kernel/backup";
import type { EgressFetch } from "@platform/kernel/egress";
import type { AdminFeeds } from "@platform/kernel/feeds";
import type { HealthRegistry } from "@platform/kernel/health";
import { BodyBudget, createApi, RateLimit, type Api } from "@platform/kernel/http";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { createHttpMetrics, type MetricRegistry } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import type { Analytics } from "../analytics/analytics.ts";
import type { CheckMail } from "../check/mail-check.ts";
import { VERSION, type NotifyConfig } from "../config.ts";
import { DATA_FORMAT } from "../database/schema.ts";
import type { ReportSender } from "../dmarc/report-sender.ts";
import type { DmarcReports } from "../dmarc/reports.ts";
import type { Domains } from "../domain/domains.ts";
import type { Inbound } from "../inbound/inbound.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { WebPush } from "../push/web-push.ts";
import type { SmsReceipts } from "../relay/sms/receipts.ts";
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
import { createConsole } from "./console.ts";
import { createDmarcRoutes } from "./dmarc-routes.ts";
import { createDomainRoutes } from "./domain-routes.ts";
import { createFeeds, QueueLength } from "./feeds.ts";
import { createInboundRoutes } from "./inbound-routes.ts";
import { createInboxRoutes } from "./inbox-routes.ts";
import { createLinkRoutes } from "./link-routes.ts";
import { createMessageRoutes } from "./message-routes.ts";
import { createPushRoutes } from "./push-routes.ts";
import { createSendRoutes } from "./send-routes.ts";
import { createSmsReceiptRoutes } from "./sms-receipt-routes.ts";
import { createSuppressionRoutes } from "./suppression-routes.ts";
import { createTemplatePreviewRoutes } from "./template-preview-routes.ts";
import { createTemplateRoutes } from "./template-routes.ts";
import { createWebhookRoutes } from "./webhook-routes.ts";

/** Parts that the API uses. */
export interface NotifyApiParts {
  config: NotifyConfig;
  /** Undefined without credentials. */
  verifier: TokenVerifier | undefined;
  registry: MetricRegistry;
  health: HealthRegistry;
  tracer: Tracer;
  clock: Clock;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "stopping">;
  /** Returns the number of deliveries that have not ended. */
  countOpen: () => Promise<number>;
  takeSnapshot: () => Promise<Snapshot>;
  sender: Sender;
  messages: Messages;
  contents: StoredContents;
  resender: Resender;
  checkMail: CheckMail;
  templates: Templates;
  suppressions: Suppressions;
  webhooks: Webhooks;
  inbound: Inbound;
  domains: Domains;
  dmarcReports: DmarcReports;
  reportSender: ReportSender;
  /** Undefined if mail is sent to a relay. */
  inbox: Inbox | undefined;
  webPush: WebPush;
  /** Undefined without a gateway. */
  smsReceipts: SmsReceipts | undefined;
  unsubscribes: Unsubscribes;
  tracking: Tracking;
  analytics: Analytics;
  /** Checks the addresses of targets. */
  fetchTarget: EgressFetch;
}

/** JSON and base64 around the attachments and texts. */
const BODY_OVERHEAD = 1.4;
const TEXT_BYTES = 12 * 1024 * 1024;

/** Creates the API and its feeds. */
export function createNotifyApi(parts: NotifyApiParts): { api: Api; feeds: AdminFeeds } {
  const { config, verifier, registry, health, tracer, clock, log, lifecycle } = parts;
  const hasInbox = parts.inbox !== undefined;
  const console = createConsole({ config, verifier, hasInbox, clock });
  const { guard } = console;
  const queueLength = new QueueLength(parts.countOpen);
  lifecycle.onDrain("queue length", () => queueLength.stop());
  const feeds = createFeeds({ registry, queueLength, health, guard, clock, logger: log });
  const bodyBytesMax = Math.ceil(config.attachment_bytes_max * BODY_OVERHEAD) + TEXT_BYTES;
  const rate = createSendRate(parts);
  const api = createApi({
    bodyBudget: createBodyBudget(config, bodyBytesMax),
    service: "notify",
    version: VERSION,
    title: "Mail",
    description: "Transactional mail, templates, bounces and suppression.",
    guard,
    routes: [
      ...createSendRoutes({ sender: parts.sender, rate, bodyBytesMax }),
      ...createMessageRoutes({ ...parts, rate }),
      ...createTemplateRoutes(parts.templates),
      ...createTemplatePreviewRoutes(parts),
      ...createSuppressionRoutes(parts.suppressions, clock),
      ...createWebhookRoutes(parts.webhooks, parts.fetchTarget),
      ...createInboundRoutes(parts.inbound),
      ...createDomainRoutes(parts.domains),
      ...createDmarcRoutes(parts.dmarcReports, parts.reportSender, clock),
      ...createInboxRoutes(parts.inbox),
      ...createPushRoutes(parts.webPush),
      ...createSmsReceiptRoutes({
        receipts: parts.smsReceipts,
        publicUrl: config.public_url,
        clock,
      }),
      ...createLinkRoutes(parts),
      ...createAnalyticsRoutes(parts.analytics, clock),
      createBackupRoute({
        service: "notify",
        version: VERSION,
        dataFormat: DATA_FORMAT,
        token: config.backup_token,
        takeSnapshot: parts.takeSnapshot,
        stopping: lifecycle.stopping,
        clock,
        metrics: registry,
      }),
      ...feeds.createRoutes(),
      ...console.createRoutes(),
    ],
    metricsToken: config.metrics_token,
    health,
    metrics: registry,
    httpMetrics: createHttpMetrics(registry),
    logger: log,
    tracer,
    clock,
  });
  return { api, feeds };
}

function createSendRate({ config, verifier, clock }: NotifyApiParts): RateLimit | undefined {
  if (verifier === undefined || config.send_rate_per_minute === 0) return undefined;
  return new RateLimit({
    name: "send",
    detail: "Messages are sent faster than the limit of this client allows.",
    clock,
    ratePerSecond: config.send_rate_per_minute / 60,
    capacity: config.send_burst,
  });
}

// A client may always send the largest message.
function createBodyBudget({ body_bytes_max: max }: NotifyConfig, largest: number): BodyBudget {
  const bytesPerClientMax = Math.max(largest, Math.floor(max / 2));
  return new BodyBudget({ bytesMax: Math.max(max, largest), bytesPerClientMax });
}
