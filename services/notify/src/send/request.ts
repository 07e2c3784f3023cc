// Requests to send: their schemas.
import { z } from "zod";

const RECIPIENTS_MAX = 50;
const TEXT_CHARACTERS_MAX = 5 * 1024 * 1024;
const ATTACHMENTS_MAX = 100;

const address = z.string().min(1).max(320);
const addresses = z.union([address, z.array(address).min(1).max(RECIPIENTS_MAX)]);

const attachment = z.strictObject({
  filename: z.string().min(1).max(255),
  content: z.string().describe("Base64."),
  content_type: z.string().min(3).max(127).default("application/octet-stream"),
  content_id: z.string().min(1).max(128).optional().describe("For `cid:` links of the HTML."),
});

/** Fields of every send request. */
const envelopeFields = {
  channel: z.enum(["email", "sms"]).default("email"),
  to: addresses.describe("Address, `Name <address>`, or a list; for SMS a number in E.164 form."),
  from: address.optional().describe("Default: `no-reply@` and the default sending domain."),
  cc: z.array(address).max(RECIPIENTS_MAX).default([]),
  bcc: z.array(address).max(RECIPIENTS_MAX).default([]),
  reply_to: addresses.optional(),
  attachments: z.array(attachment).max(ATTACHMENTS_MAX).default([]),
  headers: z.record(z.string(), z.string()).default({}).describe("Additional header fields."),
  tags: z.array(z.string().min(1).max(64)).max(10).default([]),
  metadata: z.record(z.string().max(64), z.string().max(512)).default({}),
  stream: z.enum(["transactional", "bulk"]).default("transactional"),
  send_at: z.iso.datetime({ offset: true }).optional().describe("Time of delivery."),
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

/** A request to send a message. */
export type SendRequest = z.output<typeof sendRequest>;

/** A request to send a template. */
export type TemplateRequest = z.output<typeof templateRequest>;
