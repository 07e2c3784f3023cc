// The header of a message, split into its fields as they are.

/** A field with its folded lines, including the last CRLF. */
interface RawField {
  /** In lower case. */
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

/**
 * Returns a message with other values of fields that it has; `values` are formatted fields with CRLF by name in lower case.
 * An empty one removes the field.
 */
export function replaceFields(content: Buffer, values: ReadonlyMap<string, string>): Buffer {
  const { fields, body } = splitMessage(content);
  const head = fields.map(({ name, text }) => values.get(name) ?? text).join("");
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
