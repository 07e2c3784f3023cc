// Escaping of header names and values.
import { StompError } from "./stomp-error.ts";
import type { StompVersion } from "./version.ts";

const DECODED: Readonly<Record<string, string>> = {
  "\\n": "\n",
  "\\c": ":",
  "\\\\": "\\",
  "\\r": "\r",
};
const ENCODED: Readonly<Record<string, string>> = {
  "\n": "\\n",
  ":": "\\c",
  "\\": "\\\\",
  "\r": "\\r",
};

/** Decodes a header name or value. Throws a `StompError` for escapes that the version does not define. */
export function unescapeHeader(text: string, version: StompVersion): string {
  if (version === "1.0" || !text.includes("\\")) return text;
  return text.replace(/\\[^]?/g, (pair) => {
    const decoded = DECODED[pair];
    if (decoded !== undefined && (decoded !== "\r" || version === "1.2")) return decoded;
    throw new StompError("malformed", `undefined escape in the header ${JSON.stringify(text)}`);
  });
}

/**
 * Encodes a header name or value; undefined if the version cannot express it: 1.0 has no escapes, and a name may hold no
 * colon there. 1.1 has none for a carriage return, which is sent as it is.
 */
export function escapeHeader(
  text: string,
  version: StompVersion,
  part: "name" | "value",
): string | undefined {
  if (!/[\\\n\r:\0]/.test(text)) return text;
  // The frame would end there for clients that do not count.
  if (text.includes("\0")) return undefined;
  if (version !== "1.0") {
    const special = version === "1.2" ? /[\\\n\r:]/g : /[\\\n:]/g;
    return text.replace(special, (character) => ENCODED[character]!);
  }
  const isPlain = !text.includes("\n") && (part === "value" || !text.includes(":"));
  return isPlain ? text : undefined;
}
