// Checks a request and converts it to a draft: parsed addresses, decoded attachments, allowed header fields.
import { createValidationError } from "@platform/kernel/http";
import { parseMailbox, type Mailbox } from "../address/mailbox.ts";
import type { Attachment, CalendarPart } from "../message/compose.ts";
import type { SendRequest } from "./request.ts";
import { findFilenameFault, findSubjectFault } from "./shown-text.ts";

/** A checked request. */
export interface Draft {
  from: Mailbox;
  to: Mailbox[];
  cc: Mailbox[];
  bcc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  html: string | undefined;
  text: string | undefined;
  attachments: Attachment[];
  calendar: CalendarPart | undefined;
  headers: [name: string, value: string][];
}

/** Options of {@link createDraft}. */
export interface DraftOptions {
  /** Default sender; undefined if the request must name one. */
  defaultFrom: string | undefined;
  attachmentBytesMax: number;
}

const RECIPIENTS_MAX = 50;
const HEADERS_MAX = 50;
const HEADER_BYTES_MAX = 16_384;
const VALUE_CHARACTERS_MAX = 990;
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9-]{0,75}$/;
const MEDIA_TYPE =
  /^(?!multipart\/|message\/)[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;
// Programs show invitations only with their method (RFC 6047 section 2.4).
const CALENDAR_TYPE =
  /^text\/calendar(?:; ?(?:method=[a-z]{3,16}|charset="?utf-8"?|component=[a-z]{5,9}))*$/i;
const CALENDAR = /^BEGIN:VCALENDAR\r?\n[^]*\nEND:VCALENDAR\s*$/i;
const CALENDAR_CONTROL = /(?![\t\r\n])\p{Cc}/u;
const CONTENT_ID = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+(?:@[A-Za-z0-9.-]+)?$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
// Fields that have a member of their own, that routing and signatures depend on, or that only servers add.
const RESERVED =
  /^(?:from|to|cc|bcc|sender|reply-to|subject|date|message-id|return-path|received(?:-spf)?|delivered-to|apparently-to|mime-version|content-.*|dkim-signature|domainkey-signature|arc-.*|authentication-results|resent-.*|list-unsubscribe(?:-post)?|return-receipt-to|errors-to|x-platform-.*)$/i;

/** Converts a request; `path` is the place of the request in the body, such as `messages.3.`. */
export function createDraft(request: SendRequest, options: DraftOptions, path = ""): Draft {
  const read = (field: string, value: string | readonly string[]): Mailbox[] =>
    readMailboxes(`${path}${field}`, value);
  const to = read("to", request.to);
  const cc = read("cc", request.cc);
  const bcc = read("bcc", request.bcc);
  const count = to.length + cc.length + bcc.length;
  if (count > RECIPIENTS_MAX)
    fail(`${path}to`, `at most ${RECIPIENTS_MAX} recipients in to, cc and bcc`);
  const from = request.from ?? options.defaultFrom;
  if (from === undefined)
    fail(`${path}from`, "required, because no default sending domain is configured");
  const subject = request.subject ?? "";
  const subjectFault = findSubjectFault(subject);
  if (subjectFault !== undefined) fail(`${path}subject`, subjectFault);
  if (request.html === undefined && request.text === undefined) {
    fail(`${path}text`, "at least one of text and html is required");
  }
  return {
    from: read("from", from)[0]!,
    to,
    cc,
    bcc,
    replyTo: request.reply_to === undefined ? [] : read("reply_to", request.reply_to),
    subject,
    html: request.html,
    text: request.text,
    attachments: readAttachments(request, options.attachmentBytesMax, path),
    calendar: readCalendar(request, path),
    headers: readHeaders(request.headers, path),
  };
}

function readMailboxes(field: string, value: string | readonly string[]): Mailbox[] {
  const texts = typeof value === "string" ? [value] : value;
  return texts.map((text, index) => {
    const result = parseMailbox(text);
    if (result.ok) return result.mailbox;
    return fail(typeof value === "string" ? field : `${field}.${index}`, result.reason);
  });
}

function readAttachments(request: SendRequest, bytesMax: number, path: string): Attachment[] {
  let size = 0;
  return request.attachments.map((one, index) => {
    const place = `${path}attachments.${index}`;
    const fault = findFilenameFault(one.filename);
    if (fault !== undefined) fail(`${place}.filename`, fault);
    if (!MEDIA_TYPE.test(one.content_type) && !CALENDAR_TYPE.test(one.content_type)) {
      fail(
        `${place}.content_type`,
        "not a media type without parameters, or a multipart or message type",
      );
    }
    if (one.content_id !== undefined && !CONTENT_ID.test(one.content_id)) {
      fail(`${place}.content_id`, "not a content id such as logo or logo@example.org");
    }
    const encoded = one.content.replaceAll(/[\r\n]/g, "");
    if (!BASE64.test(encoded)) fail(`${place}.content`, "not valid base64");
    const content = Buffer.from(encoded, "base64");
    size += content.length;
    if (size > bytesMax) fail(place, `the attachments exceed ${bytesMax} bytes in all`);
    return {
      filename: one.filename,
      contentType: one.content_type,
      content,
      contentId: one.content_id,
    };
  });
}

// The method of the part and of its content are the same (RFC 6047 section 2.4).
function readCalendar({ calendar }: SendRequest, path: string): CalendarPart | undefined {
  if (calendar === undefined) return undefined;
  const { method, content } = calendar;
  const place = `${path}calendar.content`;
  if (!CALENDAR.test(content) || CALENDAR_CONTROL.test(content)) fail(place, "not an iCalendar");
  const found = /^METHOD:[ \t]*([A-Z]+)[ \t]*\r?$/im.exec(content)?.[1]?.toUpperCase();
  if (found !== method) fail(place, `has METHOD:${found ?? "(none)"}, but the method is ${method}`);
  return { method, content };
}

function readHeaders(
  headers: Readonly<Record<string, string>>,
  path: string,
): [name: string, value: string][] {
  const entries = Object.entries(headers);
  if (entries.length > HEADERS_MAX) fail(`${path}headers`, `at most ${HEADERS_MAX} fields`);
  const seen = new Set<string>();
  let size = 0;
  for (const [name, value] of entries) {
    const place = `${path}headers.${name}`;
    if (!FIELD_NAME.test(name))
      fail(`${path}headers`, "a field name has letters, digits and dashes");
    if (RESERVED.test(name)) fail(place, "this field is set by the service");
    if (seen.has(name.toLowerCase())) fail(place, "the field occurs twice");
    if (CONTROL.test(value)) fail(place, "contains control characters or line breaks");
    if (value.length > VALUE_CHARACTERS_MAX)
      fail(place, `at most ${VALUE_CHARACTERS_MAX} characters`);
    seen.add(name.toLowerCase());
    size += name.length + Buffer.byteLength(value);
  }
  if (size > HEADER_BYTES_MAX) fail(`${path}headers`, `at most ${HEADER_BYTES_MAX} bytes in all`);
  return entries;
}

function fail(path: string, message: string): never {
  throw createValidationError([{ in: "body", path, message }]);
}
