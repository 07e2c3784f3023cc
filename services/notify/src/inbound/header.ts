// The header of a received message: its fields as they are, and the trace fields that the service adds.

/** A field with its folded lines, including the last CRLF. */
interface RawField {
  name: string;
  text: string;
}

/** A message, split before its body. */
export interface SplitMessage {
  fields: RawField[];
  /** The empty line and everything after it. */
  body: Uint8Array;
}

const HEADER_END = Buffer.from("\r\n\r\n");

/** Splits a message. Header bytes are read as Latin-1, which preserves them. */
export function splitMessage(content: Buffer): SplitMessage {
  const found = content.indexOf(HEADER_END);
  const end = found === -1 ? content.length : found + 2;
  const text = content.toString("latin1", 0, end);
  const fields = text
    .split(/\r\n(?![ \t])/)
    .filter((field) => field !== "")
    .map((field) => ({
      name: field
        .slice(0, Math.max(0, field.indexOf(":")))
        .trim()
        .toLowerCase(),
      text: `${field}\r\n`,
    }));
  return { fields, body: content.subarray(end) };
}

/** Adds fields on top, and removes Authentication-Results that claim to be from this host (RFC 8601 section 5). */
export function addTrace(content: Buffer, trace: string, hostname: string): Buffer {
  const { fields, body } = splitMessage(content);
  const kept = fields.filter(({ name, text }) => !isForged(name, text, hostname));
  const head = `${trace}${kept.map(({ text }) => text).join("")}`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

function isForged(name: string, text: string, hostname: string): boolean {
  if (name !== "authentication-results") return false;
  const value = text.slice(text.indexOf(":") + 1).replaceAll(/\([^)]*\)/g, " ");
  return (
    value.trim().split(/[\s;]/, 1)[0]!.replaceAll('"', "").toLowerCase() === hostname.toLowerCase()
  );
}
