// Parses received mail without the loss of a byte: for the parser, which reads lines, attachments become base64 and header
// bytes UTF-8.
import { randomBytes } from "node:crypto";
import PostalMime, { type Email, type PostalMimeOptions } from "postal-mime";
import { encodeBase64 } from "./encoding.ts";
import { listParts, readParameter, readPartField, type MimePart } from "./mime-tree.ts";

interface Edit {
  start: number;
  end: number;
  content: Buffer;
}

const PARTS_MAX = 20_000;
const CONTAINERS_MAX = 256;
const WORD = "=\\?[^?\\s]+\\?[QqBb]\\?[^?]*\\?=";
const WORDS = new RegExp(`${WORD}(?:[ \\t\\r\\n]+${WORD})*`, "g");
const WORD_PARTS = /=\?([^?\s*]+)[^?\s]*\?([QqBb])\?([^?]*)\?=/g;
const SHIFTED = /\+([A-Za-z0-9+/]*)-?/g;
const UTF_7 = /^(?:unicode-1-1-)?utf-?7$/i;

/** The parser rewrites the text of these types. */
const CALENDAR_TYPES = /^(?:text\/calendar|application\/ics)$/;
/** Stands for a type that the parser rewrites. No sender knows it. */
const OPAQUE_TYPE = `application/x-${randomBytes(12).toString("hex")}-`;

/** The type and the method of a calendar. */
interface Calendar {
  type: string;
  method: string | undefined;
}

/** Parses a message. The attachments, also those of calendars and attached messages, are the bytes that were sent. */
export async function parseExactMail(
  content: Buffer,
  options: PostalMimeOptions = {},
): Promise<Email> {
  const calendars: Calendar[] = [];
  const mail = await PostalMime.parse(toExactMail(content, calendars), options);
  for (const attachment of mail.attachments) {
    if (!attachment.mimeType.startsWith(OPAQUE_TYPE)) continue;
    const calendar = calendars[Number(attachment.mimeType.slice(OPAQUE_TYPE.length))];
    if (calendar === undefined) continue;
    attachment.mimeType = calendar.type;
    if (calendar.method !== undefined) attachment.method = calendar.method;
  }
  return mail;
}

/**
 * Returns a message with the same parts. A parser that reads lines would end attachments in 7bit, 8bit, binary and
 * quoted-printable with one more line end and turn CRLF into LF: their bytes are in base64 here (RFC 2046 section 5.1.1).
 * Header bytes are UTF-8, or Windows-1252 if they are not. Adjacent encoded words of one charset are one word, since
 * characters may be split between them. UTF-7 becomes UTF-8. The types of calendars are replaced, and added to `calendars`.
 */
function toExactMail(content: Buffer, calendars: Calendar[]): Buffer {
  const parts = listParts(content, { partsMax: PARTS_MAX, containersMax: CONTAINERS_MAX });
  if (parts === undefined) return content;
  // The parts of an attached message belong to its bytes.
  let opaqueEnd = 0;
  const edits = parts.flatMap((part) => {
    if (part.headerStart < opaqueEnd) return [];
    if (isAttachedMessage(content, part)) opaqueEnd = part.bodyEnd;
    return editPart(content, part, calendars);
  });
  if (edits.length === 0) return content;
  const chunks: Buffer[] = [];
  let at = 0;
  for (const { start, end, content: replacement } of edits) {
    chunks.push(content.subarray(at, start), replacement);
    at = end;
  }
  chunks.push(content.subarray(at));
  return Buffer.concat(chunks);
}

function editPart(content: Buffer, part: MimePart, calendars: Calendar[]): Edit[] {
  const { headerStart, headerEnd, bodyStart, bodyEnd } = part;
  const header = content.subarray(headerStart, headerEnd);
  const isLeaf = !part.isContainer || isAttachedMessage(content, part);
  const body = isLeaf ? readBody(content, part) : undefined;
  let text = joinWords(decodeHeaderBytes(header));
  if (body !== undefined) {
    text = replaceField(text, "content-transfer-encoding", "Content-Transfer-Encoding: base64");
    if (body.charset !== undefined) {
      text = replaceField(text, "content-type", `Content-Type: ${part.type}; charset=utf-8`);
    }
  }
  if (CALENDAR_TYPES.test(part.type)) text = hideCalendar(content, part, text, calendars);
  const changed = Buffer.from(text);
  const edits: Edit[] = [];
  if (!changed.equals(header)) edits.push({ start: headerStart, end: headerEnd, content: changed });
  if (body !== undefined) {
    const encoded = Buffer.from(encodeBase64(body.bytes));
    edits.push({ start: bodyStart, end: bodyEnd, content: encoded });
  }
  return edits;
}

// Undefined if the parser reads the body without loss: texts that are shown, and what is base64 already.
function readBody(
  content: Buffer,
  part: MimePart,
): { bytes: Buffer; charset?: string } | undefined {
  const encoding = readPartField(content, part, "content-transfer-encoding").toLowerCase();
  const name = /[\w-]+/.exec(encoding.replaceAll(/\([^)]*\)/g, ""))?.[0] ?? "7bit";
  const type = readPartField(content, part, "content-type");
  const body = content.subarray(part.bodyStart, part.bodyEnd);
  if (/^text\/(?:plain|html)$/.test(part.type) && !isAttachment(content, part)) {
    if (!UTF_7.test(readParameter(type, "charset") ?? "")) return undefined;
    const text = decodeUtf7(decodeBody(body, name).toString("latin1"));
    return { bytes: Buffer.from(text), charset: "utf-8" };
  }
  if (name === "base64" || /^(?:x-)?uu/.test(name)) return undefined;
  return { bytes: decodeBody(body, name) };
}

function hideCalendar(
  content: Buffer,
  part: MimePart,
  header: string,
  calendars: Calendar[],
): string {
  const type = readPartField(content, part, "content-type");
  const method = readParameter(type, "method")?.trim().toUpperCase();
  const name = `${OPAQUE_TYPE}${calendars.length}`;
  calendars.push({ type: part.type, method: method === "" ? undefined : method });
  return header.replace(
    /^(content-type[ \t]*:\s*)[^;\s]+/im,
    (_, start: string) => `${start}${name}`,
  );
}

function isAttachedMessage(content: Buffer, part: MimePart): boolean {
  return part.type.startsWith("message/") && part.isContainer && isAttachment(content, part);
}

function isAttachment(content: Buffer, part: MimePart): boolean {
  return /^\s*attachment\b/i.test(readPartField(content, part, "content-disposition"));
}

function decodeBody(body: Buffer, encoding: string): Buffer {
  if (encoding === "base64") return Buffer.from(body.toString("latin1"), "base64");
  return encoding === "quoted-printable" ? decodeQuotedPrintable(body) : body;
}

// RFC 2045 section 6.7: blanks at the end of a line were added on the way; `=` at the end is a soft line break.
function decodeQuotedPrintable(body: Buffer): Buffer {
  const text = body
    .toString("latin1")
    .replaceAll(/[ \t]+(?=\r?\n|$(?![\s\S]))/g, "")
    .replaceAll(/=(?:\r?\n|$(?![\s\S]))/g, "")
    .replaceAll(/=([0-9A-Fa-f]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return Buffer.from(text, "latin1");
}

/** Returns header bytes as text: UTF-8 (RFC 6532), or what older programs write. */
export function decodeHeaderBytes(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

// RFC 2047 section 6.2: blanks between encoded words are not shown. The bytes of words of one charset are decoded together.
function joinWords(header: string): string {
  return header.replaceAll(WORDS, (run) => {
    const words: { charset: string; bytes: Buffer }[] = [];
    for (const [, charset = "", encoding = "", text = ""] of run.matchAll(WORD_PARTS)) {
      const bytes = decodeWordBytes(encoding, text);
      const last = words.at(-1);
      if (last?.charset.toLowerCase() === charset.toLowerCase()) {
        last.bytes = Buffer.concat([last.bytes, bytes]);
      } else {
        words.push({ charset, bytes });
      }
    }
    return words.map(formatWord).join(" ");
  });
}

function formatWord({ charset, bytes }: { charset: string; bytes: Buffer }): string {
  const isUtf7 = UTF_7.test(charset);
  const content = isUtf7 ? Buffer.from(decodeUtf7(bytes.toString("latin1"))) : bytes;
  return `=?${isUtf7 ? "utf-8" : charset}?B?${content.toString("base64")}?=`;
}

function decodeWordBytes(encoding: string, text: string): Buffer {
  if (encoding.toUpperCase() === "B") return Buffer.from(text, "base64");
  const plain = text.replaceAll("_", " ");
  const bytes = Buffer.from(plain);
  return decodeQuotedPrintable(Buffer.from(`${bytes.toString("latin1")}\u0000`, "latin1")).subarray(
    0,
    -1,
  );
}

/** Decodes UTF-7 (RFC 2152). */
function decodeUtf7(text: string): string {
  return text.replaceAll(SHIFTED, (_, encoded: string) => {
    if (encoded === "") return "+";
    const bytes = Buffer.from(encoded, "base64");
    return bytes
      .subarray(0, bytes.length - (bytes.length % 2))
      .swap16()
      .toString("utf16le");
  });
}

// The header has its line ends; the field may be missing.
function replaceField(header: string, name: string, field: string): string {
  const pattern = new RegExp(`^${name}[ \\t]*:.*(?:\\r?\\n[ \\t].*)*`, "im");
  if (pattern.test(header)) return header.replace(pattern, () => field);
  return header === "" || header.endsWith("\n")
    ? `${header}${field}\r\n`
    : `${header}\r\n${field}\r\n`;
}
