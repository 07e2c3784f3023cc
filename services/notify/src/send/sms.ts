// Checks requests to send an SMS.
import { createValidationError } from "@platform/kernel/http";
import type { Mailbox } from "../address/mailbox.ts";
import { SMS_DOMAIN } from "../delivery.ts";
import type { Recipient } from "./recipients.ts";
import type { SendRequest } from "./request.ts";

/** A checked SMS. */
export interface SmsDraft {
  from: Mailbox;
  subject: string;
  recipients: Recipient[];
  content: Buffer;
}

const E164 = /^\+[1-9]\d{6,14}$/;
const CHARACTERS_MAX = 1_600;
/** An alphanumeric sender of up to 11 characters, a number, or a short code. */
const SENDER = /^(?:[A-Za-z0-9][A-Za-z0-9 ]{0,10}|\+?\d{3,15})$/;

/** Converts a request; `path` is the place of the request in the body, such as `messages.3.`. */
export function createSmsDraft(request: SendRequest, path: string): SmsDraft {
  const fail = (field: string, message: string): never => {
    throw createValidationError([{ in: "body", path: `${path}${field}`, message }]);
  };
  for (const field of ["html", "subject", "reply_to", "calendar"] as const) {
    if (request[field] !== undefined) fail(field, "not allowed for SMS");
  }
  for (const field of ["cc", "bcc", "attachments"] as const) {
    if (request[field].length > 0) fail(field, "not allowed for SMS");
  }
  for (const field of ["track_opens", "track_clicks"] as const) {
    if (request[field] === true) fail(field, "not allowed for SMS");
  }
  const { text, to, from: sender = "" } = request;
  if (typeof to !== "string" || !E164.test(to)) {
    return fail("to", "for SMS a number in E.164 form, such as +4930123456");
  }
  if (sender !== "" && !SENDER.test(sender)) {
    fail("from", "for SMS a number, or up to 11 letters, digits and spaces");
  }
  if (text === undefined || text === "") return fail("text", "required for SMS");
  if (text.length > CHARACTERS_MAX) fail("text", `at most ${CHARACTERS_MAX} characters`);
  const number: Mailbox = { name: "", local: to, domain: SMS_DOMAIN, address: to };
  const from: Mailbox = { name: "", local: "", domain: "", address: sender };
  const recipients: Recipient[] = [{ kind: "to", mailbox: number }];
  return { from, subject: "", recipients, content: Buffer.from(text) };
}
