// Redaction of XML and HTML: the contents of secret elements and the values of secret attributes.
import { REDACTED } from "@platform/kernel/log";
import type { SecretNames } from "./secret-names.ts";

const ATTRIBUTE = /(?<=[\s"'])([^\s"'<>/=]{1,256})(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'<>]+)/g;
const TAG_NAME = /^<\/?([^\s<>/]{1,256})/;

/**
 * Replaces the text of secret elements, with all elements, comments and CDATA sections within them, and the values of
 * secret attributes; `redactText` cleans other text. An element that is not closed is secret to the end. Reads the text
 * once: malformed markup costs no more than any other.
 */
export function redactXml(
  text: string,
  names: SecretNames,
  redactText: (value: string) => string,
): string {
  const pieces: string[] = [];
  /** The secret element that is open, and the number of open elements of the same name within it. */
  let secret: { name: string; depth: number } | undefined;
  for (const token of splitMarkup(text)) {
    const name = TAG_NAME.exec(token)?.[1];
    if (secret !== undefined) {
      if (name !== secret.name || token.endsWith("/>")) continue;
      secret.depth += token.startsWith("</") ? -1 : 1;
      if (secret.depth > 0) continue;
      secret = undefined;
      pieces.push(token);
      continue;
    }
    if (name === undefined) {
      pieces.push(redactText(token));
      continue;
    }
    pieces.push(redactAttributes(token, names));
    const isOpening = !token.startsWith("</") && !token.endsWith("/>");
    if (isOpening && names.has(name)) {
      secret = { name, depth: 1 };
      pieces.push(REDACTED);
    }
  }
  return pieces.join("");
}

function* splitMarkup(text: string): Generator<string> {
  let at = 0;
  while (at < text.length) {
    const end = findTokenEnd(text, at);
    yield text.slice(at, end);
    at = end;
  }
}

// Without its end, a token is the rest of the text.
function findTokenEnd(text: string, at: number): number {
  const after = (mark: string): number => {
    const found = text.indexOf(mark, at);
    return found === -1 ? text.length : found + mark.length;
  };
  if (text[at] !== "<") {
    const next = text.indexOf("<", at);
    return next === -1 ? text.length : next;
  }
  if (text.startsWith("<![CDATA[", at)) return after("]]>");
  if (text.startsWith("<!--", at)) return after("-->");
  return after(">");
}

// `<input name="password" value="…">` names its value by another attribute.
function redactAttributes(tag: string, names: SecretNames): string {
  const isSecretInput = Array.from(tag.matchAll(ATTRIBUTE)).some(
    ([, name = "", , value = ""]) =>
      /^(?:name|id|key|type)$/i.test(name) && names.has(value.replaceAll(/^["']|["']$/g, "")),
  );
  return tag.replaceAll(ATTRIBUTE, (whole, name: string, between: string) =>
    names.has(name) || (isSecretInput && /^(?:value|content)$/i.test(name))
      ? `${name}${between}"${REDACTED}"`
      : whole,
  );
}
