// DKIM signatures (RFC 6376): rsa-sha256, relaxed/relaxed.
import { createHash, sign, type KeyObject } from "node:crypto";
import { promisify } from "node:util";

/** A key that signs. */
export interface SigningKey {
  domain: string;
  selector: string;
  key: KeyObject;
}

// RFC 6376 section 5.4.1, and both fields that RFC 8058 section 3.1 requires to be signed.
const SIGNED_FIELDS = new Set([
  "from",
  "to",
  "cc",
  "reply-to",
  "subject",
  "date",
  "message-id",
  "in-reply-to",
  "references",
  "mime-version",
  "content-type",
  "content-transfer-encoding",
  "list-id",
  "list-unsubscribe",
  "list-unsubscribe-post",
]);
// Listed once more than they occur: one that somebody adds breaks the signature (RFC 6376 section 8.15).
const CLOSED_FIELDS = ["from", "to", "cc", "reply-to", "subject", "date", "content-type"];
const HEADER_END = Buffer.from("\r\n\r\n");
const BASE64_LINE = 72;
const signAsync = promisify(sign);

/** Returns the DKIM-Signature field of a message, with CRLF. `content` ends its lines with CRLF. */
export async function signMessage(
  content: Buffer,
  { domain, selector, key }: SigningKey,
  nowMs: number,
): Promise<string> {
  const found = content.indexOf(HEADER_END);
  const headerEnd = found === -1 ? content.length : found + 2;
  const body = content.subarray(Math.min(content.length, headerEnd + 2));
  const fields = content
    .toString("latin1", 0, headerEnd)
    .split(/\r\n(?![ \t])/)
    .filter((field) => SIGNED_FIELDS.has(nameOf(field)));
  const bodyHash = createHash("sha256").update(relaxBody(body)).digest("base64");
  const names = [...fields.map(nameOf), ...CLOSED_FIELDS].join(":");
  const head =
    `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=${domain};\r\n s=${selector}; t=${Math.floor(nowMs / 1000)};\r\n` +
    `${foldNames(names)}\r\n bh=${bodyHash};\r\n b=`;
  // Fields of the same name are signed from the last to the first (section 5.4.2).
  const data = `${orderFields(fields).map(relaxField).join("\r\n")}\r\n${relaxField(head)}`;
  const signature = await signAsync("sha256", Buffer.from(data, "latin1"), key);
  return `${head}${foldBase64(signature.toString("base64"))}\r\n`;
}

function nameOf(field: string): string {
  return field
    .slice(0, Math.max(0, field.indexOf(":")))
    .trim()
    .toLowerCase();
}

// The order of `h=` is that of the message, so that equal names are listed as often as they occur, and each occurrence
// is taken from the bottom.
function orderFields(fields: readonly string[]): string[] {
  const left = [...fields];
  return fields.map((field) => {
    const name = nameOf(field);
    const at = left.findLastIndex((one) => nameOf(one) === name);
    return left.splice(at, 1)[0]!;
  });
}

// RFC 6376 section 3.4.2.
function relaxField(field: string): string {
  const colonAt = field.indexOf(":");
  const value = field
    .slice(colonAt + 1)
    .replaceAll("\r\n", "")
    .replaceAll(/[ \t]+/g, " ")
    .trim();
  return `${nameOf(field)}:${value}`;
}

// RFC 6376 section 3.4.4. Bodies of base64 lines are hashed as they are.
function relaxBody(body: Buffer): Buffer | string {
  const hasSpace = body.includes(" ") || body.includes("\t");
  if (!hasSpace) return trimLines(body);
  const text = body
    .toString("latin1")
    .replaceAll(/[ \t]+/g, " ")
    .replaceAll(" \r\n", "\r\n")
    .replace(/ $/, "");
  return trimLines(Buffer.from(text, "latin1"));
}

// Empty lines at the end are ignored; a body that is not empty ends with one CRLF.
function trimLines(body: Buffer): Buffer {
  let end = body.length;
  while (end >= 2 && body[end - 2] === 13 && body[end - 1] === 10) end -= 2;
  if (end === 0) return Buffer.alloc(0);
  return end + 2 <= body.length
    ? body.subarray(0, end + 2)
    : Buffer.concat([body, Buffer.from("\r\n")]);
}

function foldNames(names: string): string {
  const lines: string[] = [];
  let line = " h=";
  for (const name of names.split(":")) {
    if (line.length + name.length > BASE64_LINE) {
      lines.push(line);
      line = "  ";
    }
    line += `${name}:`;
  }
  lines.push(`${line.slice(0, -1)};`);
  return lines.join("\r\n");
}

function foldBase64(text: string): string {
  return (text.match(new RegExp(`.{1,${BASE64_LINE}}`, "g")) ?? []).join("\r\n ");
}
