// Requests to send: their schemas.
import { z } from "zod";
import { CLIENT_STREAMS, type Stream } from "../database/message.ts";
import { URGENCIES } from "../push/content.ts";

const RECIPIENTS_MAX = 50;
const TEXT_CHARACTERS_MAX = 5 * 1024 * 1024;
const ATTACHMENTS_MAX = 100;

const CALENDAR_CHARACTERS_MAX = 1024 * 1024;
const CALENDAR_METHODS = [
  "PUBLISH",
  "REQUEST",
  "REPLY",
  "ADD",
  "CANCEL",
  "REFRESH",
  "COUNTER",
  "DECLINECOUNTER",
] as const;

const address = z.string().min(1).max(320);
const addresses = z.union([address, z.array(address).min(1).max(RECIPIENTS_MAX)]);

const attachment = z.strictObject({
  filename: z.string().min(1).max(255),
  content: z.string().describe("Base64."),
  content_type: z.string().min(3).max(127).default("application/octet-stream"),
  content_id: z.string().min(1).max(128).optional().describe("For `cid:` links of the HTML."),
});

const calendar = z.strictObject({
  method: z.enum(CALENDAR_METHODS).describe("As in `METHOD` of the content (RFC 5546)."),
  content: z.string().min(1).max(CALENDAR_CHARACTERS_MAX).describe("iCalendar (RFC 5545)."),
});

const TTL_S_MAX = 28 * 86_400;

const push = z.strictObject({
  ttl_s: z
    .int()
    .min(0)
    .max(TTL_S_MAX)
    .default(86_400)
    .describe("Time for which a push service keeps it."),
  urgency: z.enum(URGENCIES).default("normal"),
  topic: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, "up to 32 letters, digits, dashes and underscores")
    .optional()
    .describe("A later message with this topic replaces one that was not delivered yet."),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2_048)
    .optional()
    .describe("Page that a click opens."),
});

/** Fields of every send request. */
const envelopeFields = {
  channel: z.enum(["email", "sms", "push"]).default("email"),
  to: addresses.describe(
    "Address, `Name <address>`, or a list; for SMS a number in E.164 form; for push messages a subscriber.",
  ),
  from: address.optional().describe("Default: `no-reply@` and the default sending domain."),
  cc: z.array(address).max(RECIPIENTS_MAX).default([]),
  bcc: z.array(address).max(RECIPIENTS_MAX).default([]),
  reply_to: addresses.optional(),
  attachments: z.array(attachment).max(ATTACHMENTS_MAX).default([]),
  calendar: calendar
    .optional()
    .describe("An invitation, as an alternative to the texts (RFC 6047)."),
  headers: z.record(z.string(), z.string()).default({}).describe("Additional header fields."),
  tags: z.array(z.string().min(1).max(64)).max(10).default([]),
  metadata: z.record(z.string().max(64), z.string().max(512)).default({}),
  stream: z.enum(CLIENT_STREAMS).default("transactional"),
  send_at: z.iso.datetime({ offset: true }).optional().describe("Time of delivery."),
  expires_at: z.iso
    .datetime({ offset: true })
    .optional()
    .describe("The message is not sent after this time, for example a code."),
  push: push.prefault({}).describe("Settings of push messages."),
  track_opens: z.boolean().optional().describe("Default: as configured for the stream."),
  track_clicks: z.boolean().optional().describe("Default: as configured for the stream."),
  sensitive: z.boolean().default(false).describe("Erases the content after delivery."),
};

/** Body of `POST /api/v1/send`. */
export const sendRequest = z.strictObject({
  ...envelopeFields,
  subject: z.string().max(998).optional(),
  html: z.string().max(TEXT_CHARACTERS_MAX).optional(),
  text: z.string().max(TEXT_CHARACTERS_MAX).optional(),
});

/** Body of `POST /api/v1/send/template`. */
export const templateRequest = z.strictObject({
  ...envelopeFields,
  template: z.string().min(1).max(128),
  variables: z.record(z.string(), z.unknown()).default({}),
  locale: z.string().max(35).optional().describe("Language variant, such as `de-AT`."),
  strict: z.boolean().default(false).describe("Missing variables are an error."),
});

/** Body of `POST /api/v1/messages/{id}/resend`. */
export const resendRequest = z.strictObject({
  to: addresses.optional().describe("Other recipients, for mail; default: those of the message."),
});

/** A request to send a message again. */
export type ResendRequest = z.output<typeof resendRequest>;

/** A request to send a message; the service's own may have any stream. */
export type SendRequest = Omit<z.output<typeof sendRequest>, "stream"> & { stream: Stream };

/** A request to send a template. */
export type TemplateRequest = z.output<typeof templateRequest>;
