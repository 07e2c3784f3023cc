// Transfer encodings of parts: 7bit where possible, otherwise quoted-printable or base64 (RFC 2045 section 6).

/** A part's body in its transfer encoding, lines ending with CRLF. */
export interface EncodedText {
  encoding: "7bit" | "quoted-printable" | "base64";
  content: string;
}

// RFC 5322 allows 998 characters; some relays wrap shorter lines, which breaks signatures.
const PLAIN_LINE_MAX = 900;
const ENCODED_LINE_MAX = 76;
const HEX = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).toUpperCase().padStart(2, "0"),
);

/** Encodes a text. Line breaks of any form become CRLF, so that no bare CR or LF leaves the service. */
export function encodeTextBody(text: string): EncodedText {
  const lines = normalizeLines(text);
  if (isPlain(lines)) return { encoding: "7bit", content: lines };
  const bytes = Buffer.from(lines);
  let special = 0;
  for (const byte of bytes) if (byte > 126 || byte === 61) special += 1;
  // Beyond this share base64 is shorter and not less readable.
  if (special * 5 > bytes.length) return { encoding: "base64", content: encodeBase64(bytes) };
  return { encoding: "quoted-printable", content: encodeQuotedPrintable(bytes) };
}

/** Encodes bytes in base64 lines of 76 characters. */
export function encodeBase64(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += ENCODED_LINE_MAX) {
    lines.push(text.slice(at, at + ENCODED_LINE_MAX));
  }
  return `${lines.join("\r\n")}\r\n`;
}

function normalizeLines(text: string): string {
  const lines = text.replaceAll(/\r\n|\r|\n/g, "\r\n");
  return lines.endsWith("\r\n") || lines === "" ? lines : `${lines}\r\n`;
}

function isPlain(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- exactly the characters that 7bit allows
  if (!/^[\t\r\n\x20-\x7e]*$/.test(text)) return false;
  let start = 0;
  for (let end = text.indexOf("\r\n"); end !== -1; end = text.indexOf("\r\n", start)) {
    if (end - start > PLAIN_LINE_MAX) return false;
    start = end + 2;
  }
  return true;
}

function encodeQuotedPrintable(bytes: Buffer): string {
  const lines: string[] = [];
  let line = "";
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === 13 && bytes[at + 1] === 10) {
      lines.push(line);
      line = "";
      at += 1;
      continue;
    }
    const isLineEnd = bytes[at + 1] === 13 && bytes[at + 2] === 10;
    const isLiteral =
      (byte >= 33 && byte <= 126 && byte !== 61) || ((byte === 32 || byte === 9) && !isLineEnd);
    const unit = isLiteral ? String.fromCharCode(byte) : `=${HEX[byte]}`;
    if (line.length + unit.length > ENCODED_LINE_MAX - 1) {
      lines.push(`${line}=`);
      line = "";
    }
    line += unit;
  }
  if (line !== "") lines.push(line);
  return `${lines.join("\r\n")}\r\n`;
}
