// The configuration of the mail service.
import { hostname } from "node:os";
import { domainToASCII } from "node:url";
import { z } from "zod";
import {
  addressSchema,
  ADDRESS_FORMS,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  readPackageVersion,
  type ConfigOf,
} from "@platform/kernel/config";

/** Shown in health responses, `--version` and metrics. */
export const VERSION = readPackageVersion(import.meta.url);

/** Presets of SMS gateways. */
const SMS_PRESETS = ["json", "twilio", "vonage", "messagebird", "sinch"] as const;

/** A preset of an SMS gateway. */
export type SmsPreset = (typeof SMS_PRESETS)[number];

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MEBIBYTE = 1024 * 1024;

const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);
const host = () => z.string().min(1).max(253);
const port = () => z.int().min(1).max(65_535);
const domainName = () =>
  z
    .string()
    .refine((text) => domainToASCII(text) !== "", "a domain name")
    .transform((text) => domainToASCII(text));

const publicUrl = () =>
  z
    .url({ protocol: /^https?$/ })
    .max(512)
    .refine((text) => !/[?#]/.test(text), "a URL without query and fragment")
    .transform((text) => new URL(text).href.replace(/\/+$/, ""));

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
  connections_max: key(count(16, 1_000_000, 2_000), {
    description: "Maximum number of HTTP connections; further ones are closed immediately.",
    unit: "connections",
  }),
  token: key(z.string().min(1).max(8192).optional(), {
    description:
      "Bearer token of the operator, who may send from any domain and manage everything.",
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
    description: "Data folder: SQLite database.",
  }),
  database_url: key(
    z
      .string()
      .regex(/^(?:postgres(?:ql)?:\/\/|sqlite:).+/)
      .optional(),
    {
      description: "postgres://… or sqlite:path. A SQLite file belongs to one process.",
      env: ["PLATFORM_NOTIFY_DATABASE_URL", "DATABASE_URL"],
      secret: true,
      defaultText: "sqlite:notify.db in the data folder",
    },
  ),
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
    description:
      "Further domains that senders with a JWT may use. The operator may use any domain.",
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
    description:
      "Allows webhooks, direct delivery and the SMS gateway at private and loopback addresses.",
  }),
};

const relay = z.strictObject({
  host: host(),
  port: port().default(587),
  user: z.string().max(1024).optional(),
  pass: z.string().max(8192).optional(),
  tls: z.enum(["auto", "implicit", "required", "opportunistic", "off"]).default("auto"),
  weight: z.int().min(0).max(1_000).default(1),
});

const smtp = {
  "smtp.mode": key(z.enum(["auto", "relay", "direct", "inbox"]).default("auto"), {
    description:
      "relay: through smtp.host or smtp.relays. direct: to the mail exchangers of each recipient's domain, honouring MTA-STS. inbox: mail stays in the development inbox. auto: relay if one is configured, otherwise inbox.",
  }),
  "smtp.direct_port": key(port().default(25), {
    description: "Port of mail exchangers in direct mode.",
  }),
  "smtp.host": key(host().optional(), {
    description: "Host of the SMTP relay. Without a relay, mail is kept in the development inbox.",
  }),
  "smtp.port": key(port().default(587), { description: "Port of the SMTP relay." }),
  "smtp.user": key(z.string().min(1).max(1024).optional(), {
    description: "User name at the relay.",
  }),
  "smtp.pass": key(z.string().min(1).max(8192).optional(), {
    description: "Password at the relay.",
    secret: true,
  }),
  "smtp.tls": key(
    z.enum(["auto", "implicit", "required", "opportunistic", "off"]).default("auto"),
    {
      description:
        "TLS to the relay. auto: implicit on port 465, required (STARTTLS with a verified certificate) with a user, otherwise opportunistic.",
    },
  ),
  "smtp.tls_ca_file": key(z.string().min(1).max(4096).optional(), {
    description: "File with additional certificate authorities (PEM) for relays.",
  }),
  "smtp.relays": key(z.array(relay).min(1).max(16).optional(), {
    description:
      "Several relays in place of smtp.host: messages are distributed by weight, and an unreachable relay is replaced by the others. Weight 0 is for fail-over only.",
    secret: true,
  }),
  "smtp.hostname": key(host().default(hostname()), {
    description: "Name of this host in EHLO.",
    defaultText: "the host name of the machine",
  }),
  "smtp.connections_max": key(count(1, 1_000, 20), {
    description: "Maximum number of concurrent deliveries.",
    unit: "connections",
  }),
  "smtp.destination_connections_max": key(count(1, 1_000, 20), {
    description: "Maximum number of concurrent deliveries to one destination.",
    unit: "connections",
  }),
  "smtp.destination_rate": key(z.number().min(0).max(100_000).default(0), {
    description: "Maximum number of deliveries per second to one destination; 0 for no limit.",
    unit: "messages/s",
  }),
  "smtp.messages_per_connection_max": key(count(1, 100_000, 100), {
    description: "Connections are closed after this number of messages.",
    unit: "messages",
  }),
  "smtp.connect_timeout_ms": key(count(100, 5 * MINUTE_MS, 30 * SECOND_MS), {
    description: "Timeout of connections and TLS handshakes.",
    unit: "ms",
  }),
  "smtp.command_timeout_ms": key(count(100, 5 * MINUTE_MS, MINUTE_MS), {
    description: "Maximum wait for the reply to a command.",
    unit: "ms",
  }),
  "smtp.content_timeout_ms": key(count(100, 5 * MINUTE_MS, 5 * MINUTE_MS), {
    description:
      "Maximum wait for the reply to a message's content. After it the message is sent again, with the event duplicate_possible.",
    unit: "ms",
  }),
};

const sms = {
  "sms.preset": key(z.enum(SMS_PRESETS).optional(), {
    description:
      "API of the SMS gateway. json: a POST of {to, from, text, id} to sms.url with sms.secret as bearer token. Without sms.preset and sms.url, SMS go to the development inbox, or are refused with 422 if mail is sent by a relay.",
    defaultText: "json if sms.url is set",
  }),
  "sms.account": key(z.string().max(256).default(""), {
    description: "Account at the gateway, as its preset needs it.",
  }),
  "sms.secret": key(z.string().max(8192).default(""), {
    description: "Token or password at the gateway.",
    secret: true,
  }),
  "sms.from": key(z.string().max(16).default(""), {
    description: "Sender of SMS that name none: a number, or up to 11 letters and digits.",
  }),
  "sms.url": key(z.string().min(8).max(2048).optional(), {
    description:
      "URL of the gateway, in place of that of the preset. Placeholders in URL, headers and body: {to}, {to_digits} (without +), {from}, {text}, {id}, {account}, {secret}, {basic} (account:secret in base64); each is escaped for its place.",
    secret: true,
  }),
  "sms.headers": key(
    z.record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/), z.string().max(4096)).optional(),
    {
      description: "Header fields of requests to the gateway, in addition to those of the preset.",
      secret: true,
    },
  ),
  "sms.body": key(z.string().max(16_384).optional(), {
    description:
      "Body of requests to the gateway, in place of that of the preset. Content-Type decides how placeholders are escaped: JSON, form, or not at all.",
  }),
  "sms.id_field": key(z.string().max(128).optional(), {
    description: "Path of the message id in the gateway's JSON answer, such as messages.0.id.",
  }),
  "sms.status_field": key(z.string().max(128).optional(), {
    description:
      "Path of a member of the gateway's JSON answer that decides with a status of 2xx: other values than sms.status_accepted reject the message.",
  }),
  "sms.status_accepted": key(z.array(z.string().max(64)).max(32).optional(), {
    description: "Values of sms.status_field that accept a message.",
  }),
  "sms.timeout_ms": key(count(100, 5 * MINUTE_MS, 15 * SECOND_MS), {
    description:
      "Maximum wait for the gateway. After it the message is sent again, with the event duplicate_possible.",
    unit: "ms",
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
};

const inbound = {
  inbound_port: key(z.int().min(0).max(65_535).optional(), {
    description: "SMTP port for inbound mail. Without it no mail is received.",
  }),
  inbound_host: key(z.string().min(1).max(253).default("::"), {
    description: "Address on which inbound mail is received.",
  }),
  inbound_tls_cert_file: key(z.string().min(1).max(4096).optional(), {
    description:
      "File with the certificate chain for STARTTLS on the inbound port (PEM). Without it STARTTLS is not offered.",
  }),
  inbound_tls_key_file: key(z.string().min(1).max(4096).optional(), {
    description: "File with the private key of inbound_tls_cert_file (PEM).",
  }),
  inbound_bytes_max: key(count(1_024, 100 * MEBIBYTE, 25 * MEBIBYTE), {
    description: "Maximum size of a received message; larger ones are refused with 552.",
    unit: "bytes",
  }),
  inbound_recipients_max: key(count(1, 1_000, 100), {
    description: "Maximum number of recipients of a received message; further ones get 452.",
    unit: "recipients",
  }),
  inbound_connections_max: key(count(1, 10_000, 200), {
    description: "Maximum number of inbound SMTP connections; further ones get 421.",
    unit: "connections",
  }),
  inbound_connections_per_address_max: key(count(1, 10_000, 20), {
    description: "Maximum number of inbound SMTP connections of a client address.",
    unit: "connections",
  }),
  inbound_rate_per_minute: key(count(0, 10_000_000, 600), {
    description:
      "Received messages per minute and client address; more get 450. 0 means unlimited.",
    unit: "messages/min",
  }),
  inbound_retention_ms: key(count(HOUR_MS, 3650 * DAY_MS, 7 * DAY_MS), {
    description: "Contents of received messages are erased after this time.",
    unit: "ms",
  }),
  dmarc_enabled: key(z.boolean().default(true), {
    description:
      "Enforces DMARC policies on received mail: messages that fail are refused (reject) or kept without being forwarded (quarantine).",
  }),
  dmarc_alignment: key(z.enum(["off", "warn", "enforce"]).default("warn"), {
    description:
      "Sending from domains without an active DKIM key, whose mail is not aligned by DKIM: warn logs it once per hour and domain, enforce refuses it with 422.",
  }),
  dns_servers: key(z.array(z.string().min(2).max(64)).min(1).max(8).optional(), {
    description: "DNS servers for SPF, DKIM, DMARC and domain checks: address or address:port.",
    defaultText: "the servers of the system",
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
    ...smtp,
    ...sms,
    ...push,
    ...inbound,
    ...serviceKeys,
    otel_endpoint,
  },
});

/** The validated configuration. */
export type NotifyConfig = ConfigOf<typeof notifyDefinition.keys>;
