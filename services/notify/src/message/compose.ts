// Composes a message in the form in which it is sent (RFC 5322, RFC 2045, RFC 2046): CRLF only, no line above 998.
//
//   mixed ─┬─ related ─┬─ alternative ─┬─ text/plain
//          │           │               ├─ text/html
//          │           │               └─ text/calendar
//          │           └─ parts with a Content-ID
//          └─ attachments
//
// Levels with a single member are omitted.
import { randomBytes } from "node:crypto";
import type { Mailbox } from "../address/mailbox.ts";
import { encodeBase64, encodeTextBody } from "./encoding.ts";
import { formatMailboxField, formatParameter, formatRawField, formatTextField } from "./header.ts";

/** An attachment. With a content id it is part of the HTML, as `cid:<id>`. */
export interface Attachment {
  filename: string;
  contentType: string;
  content: Uint8Array;
  contentId?: string | undefined;
}

/** An invitation (RFC 6047): iCalendar, and its method (RFC 5546). */
export interface CalendarPart {
  method: string;
  content: string;
}

/** The content of a message. At least one of `text` and `html` is set. */
export interface MessageContent {
  headerId: string;
  dateMs: number;
  from: Mailbox;
  to: readonly Mailbox[];
  cc: readonly Mailbox[];
  replyTo: readonly Mailbox[];
  subject: string;
  text?: string | undefined;
  html?: string | undefined;
  calendar?: CalendarPart | undefined;
  attachments: readonly Attachment[];
  /** Additional fields, checked by the caller. */
  headers: readonly (readonly [name: string, value: string])[];
}

/** Composes the message. */
export function composeMessage(content: MessageContent): Buffer {
  const { from, to, cc, replyTo, headers } = content;
  const head =
    `Date: ${formatDate(content.dateMs)}\r\n` +
    formatRawField("Message-ID", content.headerId) +
    formatMailboxField("From", [from]) +
    formatMailboxField("To", to) +
    (cc.length === 0 ? "" : formatMailboxField("Cc", cc)) +
    (replyTo.length === 0 ? "" : formatMailboxField("Reply-To", replyTo)) +
    formatTextField("Subject", content.subject) +
    headers.map(([name, value]) => formatTextField(name, value)).join("") +
    "MIME-Version: 1.0\r\n";
  return Buffer.from(head + composeBody(content), "latin1");
}

// Each part is its Content fields, an empty line, and its content.
function composeBody({ text, html, calendar, attachments }: MessageContent): string {
  const inline =
    html === undefined ? [] : attachments.filter((part) => part.contentId !== undefined);
  const attached = attachments.filter((part) => !inline.includes(part));
  const texts = [
    ...(text === undefined ? [] : [composeText("plain", text)]),
    ...(html === undefined ? [] : [composeText("html", html)]),
    ...(calendar === undefined ? [] : [composeCalendar(calendar)]),
  ];
  const alternative = composeMultipart("alternative", texts);
  const related = composeMultipart("related", [alternative, ...inline.map(composeAttachment)]);
  return composeMultipart("mixed", [related, ...attached.map(composeAttachment)]);
}

function composeText(subtype: "plain" | "html", text: string): string {
  const { encoding, content } = encodeTextBody(text);
  return `Content-Type: text/${subtype}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${content}`;
}

function composeCalendar({ method, content }: CalendarPart): string {
  const { encoding, content: encoded } = encodeTextBody(content);
  return `Content-Type: text/calendar; charset=utf-8; method=${method}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${encoded}`;
}

function composeAttachment({ filename, contentType, content, contentId }: Attachment): string {
  const disposition = contentId === undefined ? "attachment" : "inline";
  return (
    `Content-Type: ${contentType};\r\n ${formatParameter("name", filename)}\r\n` +
    "Content-Transfer-Encoding: base64\r\n" +
    `Content-Disposition: ${disposition};\r\n ${formatParameter("filename", filename)}\r\n` +
    (contentId === undefined ? "" : `Content-ID: <${contentId}>\r\n`) +
    `\r\n${encodeBase64(content)}`
  );
}

function composeMultipart(subtype: string, parts: readonly string[]): string {
  if (parts.length === 1) return parts[0]!;
  const boundary = `=_${randomBytes(15).toString("base64url")}`;
  const body = parts.map((part) => `--${boundary}\r\n${part}`).join("\r\n");
  return `Content-Type: multipart/${subtype}; boundary="${boundary}"\r\n\r\n${body}\r\n--${boundary}--\r\n`;
}

/** Formats a time (RFC 5322 section 3.3), in UTC. */
export function formatDate(ms: number): string {
  return new Date(ms).toUTCString().replace("GMT", "+0000");
}
