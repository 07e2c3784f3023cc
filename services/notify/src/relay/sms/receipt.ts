// Delivery receipts of SMS gateways: their form, and how they prove that they come from the gateway.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { SmsPreset } from "../../settings/sms.ts";

/** A request of the gateway. */
export interface ReceiptRequest {
  method: string;
  /** Public URL of the request, with its query; undefined without `public_url`. */
  url: string | undefined;
  query: string;
  headers: Pick<Headers, "get">;
  body: Uint8Array;
}

/** State of a message at the gateway; `pending` ones say nothing about the end. */
export interface Receipt {
  id: string;
  state: "delivered" | "failed" | "pending";
  /** Status as the gateway names it. */
  status: string;
}

/** Secrets that prove receipts. */
export interface ReceiptSecrets {
  /** Bearer token, password of Basic authentication, or key of signed tokens. */
  receipt: string | undefined;
  /** Credential of the gateway's API, which signs receipts of some. */
  api: string;
}

interface ReceiptShape {
  id: string;
  status: string;
  delivered: readonly string[];
  failed: readonly string[];
}

// Names of states are compared in lower case.
const SHAPES: Readonly<Record<SmsPreset, ReceiptShape>> = {
  json: {
    id: "id",
    status: "status",
    delivered: ["delivered"],
    failed: ["failed", "undelivered", "undeliverable", "rejected", "expired"],
  },
  // https://www.twilio.com/docs/messaging/guides/track-outbound-message-status
  twilio: {
    id: "MessageSid",
    status: "MessageStatus",
    delivered: ["delivered", "read"],
    failed: ["undelivered", "failed"],
  },
  // https://developer.vonage.com/en/api/messages#message-status
  vonage: {
    id: "message_uuid",
    status: "status",
    delivered: ["delivered", "read"],
    failed: ["rejected", "undeliverable"],
  },
  // https://developers.messagebird.com/api/sms-messaging/#handle-a-status-report
  messagebird: {
    id: "id",
    status: "status",
    delivered: ["delivered"],
    failed: ["delivery_failed", "expired"],
  },
  // https://developers.sinch.com/docs/sms/api-reference/sms/delivery-reports
  sinch: {
    id: "batch_id",
    status: "status",
    delivered: ["delivered"],
    failed: ["aborted", "rejected", "failed", "expired", "deleted"],
  },
};
const FIELD_CHARACTERS_MAX = 255;
const SHA1_BYTES = 20;

/** Reads a receipt; undefined if it has no id and status. */
export function readReceipt(preset: SmsPreset, request: ReceiptRequest): Receipt | undefined {
  const shape = SHAPES[preset];
  const fields = readFields(request);
  const [id, status] = [fields.get(shape.id) ?? "", fields.get(shape.status) ?? ""];
  if (id === "" || status === "" || id.length > FIELD_CHARACTERS_MAX) return undefined;
  const name = status.toLowerCase();
  const state = shape.delivered.includes(name)
    ? "delivered"
    : shape.failed.includes(name)
      ? "failed"
      : "pending";
  return { id, state, status: status.slice(0, FIELD_CHARACTERS_MAX) };
}

/** True if a request proves that it comes from the gateway. Without secrets nothing is accepted. */
export function isAuthentic(
  preset: SmsPreset,
  request: ReceiptRequest,
  { receipt, api }: ReceiptSecrets,
): boolean {
  if (preset === "twilio" && api !== "" && hasTwilioSignature(request, api)) return true;
  if (receipt === undefined) return false;
  const [scheme = "", value = ""] = (request.headers.get("authorization") ?? "").split(" ");
  switch (scheme.toLowerCase()) {
    case "basic": {
      const pair = Buffer.from(value, "base64").toString();
      return isEqual(pair.slice(pair.indexOf(":") + 1), receipt);
    }
    case "bearer":
      return isEqual(value, receipt) || isSignedFor(request, value, receipt);
    default: {
      const token = request.headers.get("messagebird-signature-jwt") ?? "";
      return preset === "messagebird" && isSignedFor(request, token, receipt);
    }
  }
}

// A form, JSON, or the query.
function readFields({ method, query, headers, body }: ReceiptRequest): Map<string, string> {
  if (method === "GET") return new Map(new URLSearchParams(query));
  const text = Buffer.from(body).toString();
  if (/x-www-form-urlencoded/i.test(headers.get("content-type") ?? "")) {
    return new Map(new URLSearchParams(text));
  }
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null) return new Map();
    const entries = Object.entries(parsed);
    return new Map(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return new Map();
  }
}

// https://www.twilio.com/docs/usage/security#validating-requests: the URL, and the fields of the form in order.
function hasTwilioSignature({ url, headers, body }: ReceiptRequest, key: string): boolean {
  if (url === undefined) return false;
  const fields = [...new URLSearchParams(Buffer.from(body).toString())].sort(([a], [b]) =>
    a < b ? -1 : a > b ? 1 : 0,
  );
  const data = url + fields.map(([name, value]) => name + value).join("");
  const expected = createHmac("sha1", key).update(data).digest();
  const given = Buffer.alloc(SHA1_BYTES);
  given.write(headers.get("x-twilio-signature") ?? "", "base64");
  return timingSafeEqual(given, expected);
}

// A token (HS256) whose claims contain the hash of the body, or of the URL (Vonage, MessageBird).
function isSignedFor({ url, body }: ReceiptRequest, token: string, key: string): boolean {
  const [head = "", payload = "", signature = ""] = token.split(".");
  const expected = createHmac("sha256", key).update(`${head}.${payload}`).digest("base64url");
  if (!isEqual(signature, expected)) return false;
  const claims = parseClaims(payload);
  const hash = (value: string | Uint8Array): string =>
    createHash("sha256").update(value).digest("hex");
  if (body.length > 0) return claims.get("payload_hash") === hash(body);
  return url !== undefined && claims.get("url_hash") === hash(url);
}

function parseClaims(payload: string): Map<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return new Map(Object.entries(claims ?? {}));
  } catch {
    return new Map();
  }
}

function isEqual(given: string, expected: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}
