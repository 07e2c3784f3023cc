// Checks requests to send push messages.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import type { Mailbox } from "../address/mailbox.ts";
import { PUSH_DOMAIN_PREFIX } from "../delivery.ts";
import type { PushContent } from "../push/content.ts";
import { PUSH_BYTES_MAX } from "../push/encryption.ts";
import type { PushSubscriptions } from "../push/subscriptions.ts";
import type { Recipient } from "./recipients.ts";
import type { SendRequest } from "./request.ts";
import { findSubjectFault } from "./shown-text.ts";

/** A checked push message. */
export interface PushDraft {
  from: Mailbox;
  subject: string;
  recipients: Recipient[];
  content: Buffer;
}

/** Options of {@link createPushDraft}. */
export interface PushDraftOptions {
  messageId: string;
  client: string;
  subscriptions: PushSubscriptions;
  /** Place of the request in the body, such as `messages.3.`. */
  path: string;
}

const NOBODY: Mailbox = { name: "", local: "", domain: "", address: "" };

/** Converts a request: `to` is a subscriber, each of whose browsers is a recipient. Throws if it has none. */
export async function createPushDraft(
  request: SendRequest,
  { messageId, client, subscriptions, path }: PushDraftOptions,
): Promise<PushDraft> {
  const fail = (field: string, message: string): never => {
    throw createValidationError([{ in: "body", path: `${path}${field}`, message }]);
  };
  for (const field of ["html", "from", "reply_to", "calendar"] as const) {
    if (request[field] !== undefined) fail(field, "not allowed for push messages");
  }
  for (const field of ["cc", "bcc", "attachments"] as const) {
    if (request[field].length > 0) fail(field, "not allowed for push messages");
  }
  for (const field of ["track_opens", "track_clicks"] as const) {
    if (request[field] === true) fail(field, "not allowed for push messages");
  }
  const { to, subject = "", text = "", push, metadata: data } = request;
  if (typeof to !== "string") return fail("to", "for push messages one subscriber");
  const subjectFault = findSubjectFault(subject);
  if (subjectFault !== undefined) fail("subject", subjectFault);
  if (subject === "" && text === "") fail("text", "at least one of subject and text is required");
  const { ttl_s, urgency, topic, url } = push;
  const payload = { message_id: messageId, title: subject, body: text, url, data };
  if (Buffer.byteLength(JSON.stringify(payload)) > PUSH_BYTES_MAX) {
    fail("text", `subject, text, url and metadata exceed ${PUSH_BYTES_MAX} bytes as JSON`);
  }
  const rows = await subscriptions.find(client, to);
  if (rows.length === 0) {
    const detail = `${path}to: the subscriber has no push subscription.`;
    throw new PlatformError("recipient_rejected", detail);
  }
  const recipients = rows.map(({ id, endpoint }): Recipient => {
    const domain = PUSH_DOMAIN_PREFIX + new URL(endpoint).host;
    return { kind: "to", mailbox: { name: "", local: id, domain, address: id } };
  });
  const content: PushContent = { ttl_s, urgency, topic, payload };
  return { from: NOBODY, subject, recipients, content: Buffer.from(JSON.stringify(content)) };
}
