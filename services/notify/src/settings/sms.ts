// Configuration keys of the SMS gateway.
import { z } from "zod";
import { key } from "@platform/kernel/config";
import { count, MINUTE_MS, SECOND_MS } from "./schema.ts";

/** Presets of SMS gateways. */
const SMS_PRESETS = ["json", "twilio", "vonage", "messagebird", "sinch"] as const;

/** A preset of an SMS gateway. */
export type SmsPreset = (typeof SMS_PRESETS)[number];

/** Keys `sms.*`. */
export const smsKeys = {
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
  "sms.receipt_secret": key(
    z
      .string()
      .regex(/^[\x21-\x7e]{16,1024}$/, "16 to 1024 visible ASCII characters")
      .optional(),
    {
      description:
        "Authenticates delivery receipts at /api/v1/sms/receipts: bearer token, password of Basic authentication, or key of the gateway's signed tokens (Vonage, MessageBird). Twilio signs them with sms.secret.",
      secret: true,
    },
  ),
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
