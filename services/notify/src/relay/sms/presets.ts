// Requests and answers of common SMS gateways.

import type { SmsPreset } from "../../settings/sms.ts";

/** The form of a gateway's API, with placeholders. */
export interface GatewayShape {
  /** "" if the gateway has no address of its own. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Path of the gateway's message id in its answer, such as `messages.0.id`. */
  idField: string;
  /** Path of a member of the answer that must have one of the accepted values; "" for gateways whose status decides. */
  statusField: string;
  statusAccepted: readonly string[];
}

const JSON_TYPE = { "Content-Type": "application/json", Accept: "application/json" };
const BY_STATUS = { statusField: "", statusAccepted: [] };

export const GATEWAY_SHAPES: Readonly<Record<SmsPreset, GatewayShape>> = {
  json: {
    url: "",
    headers: { ...JSON_TYPE, Authorization: "Bearer {secret}", "Idempotency-Key": "{id}" },
    body: '{"to":"{to}","from":"{from}","text":"{text}","id":"{id}"}',
    idField: "id",
    ...BY_STATUS,
  },
  // https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource
  twilio: {
    url: "https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json",
    headers: {
      "Content-Type": "application/x-www-form-urlencoded",
      Authorization: "Basic {basic}",
    },
    body: "To={to}&From={from}&Body={text}",
    idField: "sid",
    ...BY_STATUS,
  },
  // https://developer.vonage.com/en/api/messages
  vonage: {
    url: "https://api.nexmo.com/v1/messages",
    headers: { ...JSON_TYPE, Authorization: "Basic {basic}" },
    body: '{"channel":"sms","message_type":"text","to":"{to_digits}","from":"{from}","text":"{text}"}',
    idField: "message_uuid",
    ...BY_STATUS,
  },
  // https://developers.messagebird.com/api/sms-messaging/#send-outbound-sms
  messagebird: {
    url: "https://rest.messagebird.com/messages",
    headers: { ...JSON_TYPE, Authorization: "AccessKey {secret}" },
    body: '{"originator":"{from}","recipients":["{to_digits}"],"body":"{text}","datacoding":"auto"}',
    idField: "id",
    ...BY_STATUS,
  },
  // https://developers.sinch.com/docs/sms/api-reference/sms/batches/sendsms
  sinch: {
    url: "https://eu.sms.api.sinch.com/xms/v1/{account}/batches",
    headers: { ...JSON_TYPE, Authorization: "Bearer {secret}" },
    body: '{"from":"{from}","to":["{to_digits}"],"body":"{text}"}',
    idField: "id",
    ...BY_STATUS,
  },
};
