// The configuration of the mail service.
import { createConsoleKeys } from "@platform/console";
import { z } from "zod";
import {
  createDatabaseKeys,
  addressSchema,
  ADDRESS_FORMS,
  createOperationKeys,
  createRestoreCommand,
  createServiceKeys,
  createTlsKeys,
  createTokenKeys,
  defineConfig,
  key,
  readPackageVersion,
  type ConfigOf,
} from "@platform/kernel/config";
import { inboundKeys } from "./settings/inbound.ts";
import {
  count,
  DAY_MS,
  domainName,
  HOUR_MS,
  MEBIBYTE,
  MINUTE_MS,
  publicUrl,
} from "./settings/schema.ts";
import { smsKeys } from "./settings/sms.ts";
import { smtpKeys } from "./settings/smtp.ts";

/** Shown in health responses, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);

const listening = {
  port: key(z.int().min(0).max(65_535).default(8094), {
    description: "HTTP port.",
    env: ["PLATFORM_NOTIFY_PORT"],
  }),
  addr: key(addressSchema().optional(), {
    description:
      "HTTP address; overrides port. Without credentials the service listens on the loopback interface unless this is set, and accepts only programs on this machine.",
    allowed: `an address: ${ADDRESS_FORMS}`,
    defaultText: "127.0.0.1:<port>, or :<port> with credentials",
  }),
  ...createTlsKeys(
    "notify",
    "With it the HTTP listener accepts TLS only, and STARTTLS is offered for inbound mail.",
  ),
  connections_max: key(count(16, 1_000_000, 2_000), {
    description: "Maximum number of HTTP connections; further ones are closed immediately.",
    unit: "connections",
  }),
  token: key(z.string().min(1).max(8192).optional(), {
    description: "Token of the operator, who may send from any domain and manage everything.",
  }),
  body_bytes_max: key(count(1, 65_536 * MEBIBYTE, 256 * MEBIBYTE), {
    description:
      "Maximum memory for bodies that are being received: request bodies and, counted separately, inbound mail. Half of it for a client. Beyond it requests get 503, and inbound mail 452.",
    unit: "bytes",
  }),
  send_rate_per_minute: key(count(0, 10_000_000, 100), {
    description:
      "Messages per minute and client (the subject of its token); more fail with 429. The operator is exempt. 0 means unlimited.",
    unit: "messages/min",
  }),
  send_burst: key(count(1, 10_000_000, 100), {
    description: "Burst size of send_rate_per_minute.",
    unit: "messages",
  }),
};

const storage = {
  data_dir: key(z.string().min(1).max(4096).default("./data/notify"), {
    description:
      "Data folder: SQLite database, and secrets.json with the key that encrypts its secrets.",
  }),
  encryption_keys: key(z.string().min(1).max(65_536).optional(), {
    description:
      "Encrypts DKIM keys, webhook secrets and the service's own keys at rest: comma-separated 32-byte keys with the prefix hex: or base64:; the first key is used for encryption, every key for decryption. Generated once on SQLite; required on PostgreSQL.",
    secret: true,
  }),
  ...createDatabaseKeys("notify"),
  body_retention_ms: key(count(0, 3650 * DAY_MS, 7 * DAY_MS), {
    description: "Contents of delivered messages are erased after this time.",
    unit: "ms",
  }),
  message_retention_ms: key(count(HOUR_MS, 3650 * DAY_MS, 90 * DAY_MS), {
    description: "Messages, their deliveries and events are deleted after this time.",
    unit: "ms",
  }),
  inbox_messages_max: key(count(1, 100_000, 1_000), {
    description: "Maximum number of messages in the development inbox; the oldest are deleted.",
    unit: "messages",
  }),
  inbox_retention_ms: key(count(MINUTE_MS, 365 * DAY_MS, 7 * DAY_MS), {
    description:
      "Messages in the development inbox are deleted after this time, sensitive ones after 24 h at most.",
    unit: "ms",
  }),
};

const sending = {
  from_domain: key(domainName().optional(), {
    description: "Default sending domain: the default sender is no-reply@<from_domain>.",
  }),
  from_domains: key(z.array(domainName()).max(1_000).default([]), {
    description: "Further domains that senders with a JWT may use; the operator may use any.",
  }),
  public_url: key(publicUrl().optional(), {
    description:
      "Public URL of this API, for the links in mails, such as https://api.example.org/mail; a path is allowed. /unsubscribe, /open and /click below it must be open to everyone. Without it bulk messages are refused, except in inbox mode.",
    defaultText: "the address of the API in inbox mode",
  }),
  track_opens: key(z.array(z.enum(["transactional", "bulk"])).default([]), {
    description:
      "Streams whose HTML messages get an invisible image that reports opens. Messages may decide otherwise with track_opens.",
  }),
  track_clicks: key(z.array(z.enum(["transactional", "bulk"])).default([]), {
    description:
      "Streams whose links in HTML lead through this service and report clicks. Messages may decide otherwise with track_clicks.",
  }),
  send_wait_ms: key(count(0, 60_000, 5_000), {
    description:
      "Maximum time for which a request waits for the relay; then it is answered with 202 `queued`.",
    unit: "ms",
  }),
  queue_max: key(count(1, 100_000_000, 1_000_000), {
    description: "Maximum number of waiting deliveries; above it sending fails with 503.",
    unit: "deliveries",
  }),
  retry_ms: key(count(1_000, DAY_MS, 5 * MINUTE_MS), {
    description:
      "Delay of the first retry after a temporary failure; each further delay is 1.3 times as long, up to 18 retries. A delay that the relay requests takes precedence.",
    unit: "ms",
  }),
  attachment_bytes_max: key(count(0, 100 * MEBIBYTE, 25 * MEBIBYTE), {
    description: "Maximum size of the attachments of a message in all.",
    unit: "bytes",
  }),
  bounce_domain: key(domainName().optional(), {
    description:
      "Domain of bounce addresses (bounce+<id>@<bounce_domain>), whose mail this service receives. Without inbound_port and this key, bounces are sent to the sender.",
    defaultText: "from_domain, with inbound_port",
  }),
  bounce_rate_max: key(z.number().min(0).max(1).default(0.05), {
    description:
      "Share of hard bounces in an hour above which readiness shows a warning, and webhooks receive bounce_rate.exceeded.",
  }),
  allow_private_targets: key(z.boolean().default(false), {
    description: "Allows webhooks, direct delivery and SMS gateways at private addresses.",
  }),
};

const push = {
  "push.contact": key(
    z
      .url({ protocol: /^(?:https|mailto)$/ })
      .max(256)
      .optional(),
    {
      description:
        "mailto: or https: URL at which the operators of push services reach you (VAPID).",
      defaultText: "mailto:postmaster@<from_domain>",
    },
  ),
  "push.subscriptions_max": key(count(1, 100_000_000, 1_000_000), {
    description: "Maximum number of Web Push subscriptions; further ones fail with 409.",
    unit: "subscriptions",
  }),
  "push.client_subscriptions_max": key(count(1, 100_000_000, 100_000), {
    description: "Maximum number of Web Push subscriptions of a client.",
    unit: "subscriptions",
  }),
};

const { otlp_endpoint: otel_endpoint, ...serviceKeys } = createServiceKeys("notify");

/** Command line and configuration of the mail service. */
export const notifyDefinition = defineConfig({
  service: "notify",
  program: "platform-notify",
  version: VERSION,
  summary: "The mail service: transactional mail, templates, bounces and suppression.",
  file: { flag: "config", env: ["PLATFORM_NOTIFY_CONFIG"] },
  keys: {
    ...listening,
    ...createTokenKeys(
      "notify",
      "the scope `notify:send` allows sending, `notify:manage` everything",
    ),
    ...storage,
    ...sending,
    ...smtpKeys,
    ...smsKeys,
    ...push,
    ...inboundKeys,
    ...serviceKeys,
    ...createConsoleKeys(),
    ...createOperationKeys("notify"),
    otel_endpoint,
  },
  commands: { restore: createRestoreCommand() },
});

/** The validated configuration. */
export type NotifyConfig = ConfigOf<typeof notifyDefinition.keys>;
