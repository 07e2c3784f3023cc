// Reports about sent mail: delivery status notifications (RFC 3464), bounces in other forms, complaints (ARF, RFC 5965).
import PostalMime, { type Attachment, type Email } from "postal-mime";
import { parseDeliveryStatus, readAddress, type RecipientStatus } from "./delivery-status.ts";
import { isAutomaticReply, readPlainBounce, toDetail, type PlainMail } from "./plain-bounce.ts";

/**
 * A report. `failed` is final and `delayed` is not, whatever their Status (RFC 3464 section 2.3.3); `delivered` says that the
 * mail arrived. Feedback has the type of RFC 5965 section 7.3, in lower case.
 */
export type MailReport =
  | RecipientStatus
  | { kind: "feedback"; feedbackType: string; recipients: string[] };

/** Envelope of a report. */
export interface ReportEnvelope {
  /** Sender of the envelope; "" for bounces, as RFC 5321 section 4.5.5 requires. */
  sender: string;
}

const NESTING_MAX = 10;
const TEXT_MAX = 500;
const HEADER_CHARACTERS_MAX = 65_536;
const REPORT_TYPES = {
  status: /^message\/(?:global-)?delivery-status$/i,
  feedback: /^message\/feedback-report$/i,
  original:
    /^(?:message\/(?:rfc822|global|partial)|text\/rfc822-headers|message\/rfc822-headers)$/i,
};
/** Recipient in reports of Microsoft's Junk Mail Reporting Program, which have no part for the feedback. */
const JMRP_RECIPIENT = /^x-hmxmroriginalrecipient:[ \t]*(.*)$/im;

/**
 * Parses the reports of a message: one per recipient that it names. Empty for mail that reports nothing, such as vacation
 * notices. Mail with an empty sender that is not an automatic reply is a failure, even if it cannot be read.
 */
export async function parseReports(
  content: Uint8Array,
  { sender }: ReportEnvelope,
): Promise<MailReport[]> {
  const mail = await parse(content);
  const find = (type: RegExp) => mail.attachments.find(({ mimeType }) => type.test(mimeType));
  const status = find(REPORT_TYPES.status);
  if (status !== undefined) {
    const found = parseDeliveryStatus(readText(status));
    if (found.length > 0) return found.map(shorten);
  }
  const feedback = find(REPORT_TYPES.feedback);
  if (feedback !== undefined) return [parseFeedback(readText(feedback))];
  const original = find(REPORT_TYPES.original);
  const junk = original === undefined ? null : JMRP_RECIPIENT.exec(readHeader(original));
  if (junk !== null) {
    return [{ kind: "feedback", feedbackType: "abuse", recipients: toList(readAddress(junk[1])) }];
  }
  const plain = toPlainMail(mail);
  const bounce = readPlainBounce(plain);
  if (bounce !== undefined) return [shorten(bounce)];
  if (sender !== "" || isAutomaticReply(plain)) return [];
  const text = toDetail(`${plain.subject}\n${plain.text}`);
  return [{ kind: "failed", status: "", recipients: [], text }];
}

/**
 * Returns texts of a complaint that may be bounce addresses: those in the feedback (RFC 5965 section 3.2) and in the header
 * of the reported message, where servers note the envelope sender in different fields.
 */
export async function findReturnAddresses(content: Uint8Array): Promise<string[]> {
  const { attachments } = await parse(content);
  const parts = attachments.filter(
    ({ mimeType }) => REPORT_TYPES.feedback.test(mimeType) || REPORT_TYPES.original.test(mimeType),
  );
  const texts = parts.map(readHeader).join("\n");
  return [...new Set(texts.match(/\bbounce\+[\w.-]+@[\w.-]*\w/gi))].slice(0, 20);
}

function parse(content: Uint8Array): Promise<Email> {
  return PostalMime.parse(content, {
    maxNestingDepth: NESTING_MAX,
    forceRfc822Attachments: true,
    attachmentEncoding: "arraybuffer",
  });
}

function parseFeedback(text: string): MailReport {
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}[ \\t]*:[ \\t]*(.*)$`, "im").exec(text)?.[1];
  const type = /[a-z][a-z-]*/.exec((read("feedback-type") ?? "abuse").toLowerCase())?.[0];
  const recipient = readAddress(read("original-rcpt-to") ?? read("removal-recipient"));
  return { kind: "feedback", feedbackType: type ?? "other", recipients: toList(recipient) };
}

function toPlainMail(mail: Email): PlainMail {
  const fields = new Map(mail.headers.toReversed().map(({ key, value }) => [key, value]));
  // Reports attach their notice in different ways; a part of text is one as well.
  const attached = mail.attachments.filter(({ mimeType }) =>
    /^text\/(?:plain|html)$/i.test(mimeType),
  );
  const text = mail.text ?? toText(mail.html ?? "");
  return {
    subject: mail.subject ?? "",
    from: `${mail.from?.name ?? ""} ${mail.from?.address ?? ""}`,
    readField: (name) => fields.get(name) ?? "",
    text: [text, ...attached.map(readText)].join("\n").trim(),
  };
}

function toText(html: string): string {
  return html
    .replaceAll(/<(?:br|\/p|\/div|\/tr|\/h\d)\b[^>]*>/gi, "\n")
    .replaceAll(/<(?:style|script)\b[\s\S]*?<\/(?:style|script)>/gi, "")
    .replaceAll(/<\/?[a-z!][^>@]*>/gi, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&nbsp;", " ")
    .replaceAll("&amp;", "&");
}

function shorten(report: RecipientStatus): RecipientStatus {
  return { ...report, text: report.text.slice(0, TEXT_MAX) };
}

function toList(address: string | undefined): string[] {
  return address === undefined ? [] : [address];
}

function readHeader(part: Attachment): string {
  const text = readText(part).slice(0, HEADER_CHARACTERS_MAX);
  return text.split(/\r?\n\r?\n/, 1)[0]!.replaceAll(/\r?\n[ \t]+/g, " ");
}

// UTF-8 (RFC 6533), or what older servers write.
function readText({ content }: Attachment): string {
  if (typeof content === "string") return content;
  const bytes = new Uint8Array(content as ArrayBuffer);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
