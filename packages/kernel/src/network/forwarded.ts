// The Forwarded field (RFC 7239): one element for each proxy, from the first to the last.

/** Statement of one proxy about the connection that it accepted. */
export interface ForwardedElement {
  /** Address of the sender, with an optional port, or a name for it; not validated, like the others. */
  readonly node?: string;
  readonly proto?: string;
  readonly host?: string;
}

const PAIR = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))[ \t]*$/;

/**
 * Parses the value of all lines, joined by commas. An element that is malformed or names a parameter twice (section 4) is
 * empty, so that those of other proxies keep their places. An address of IPv6 may lack its quotes.
 */
export function parseForwarded(value: string): ForwardedElement[] {
  return value.trim() === "" ? [] : split(value, ",").map(parseElement);
}

function parseElement(text: string): ForwardedElement {
  const parameters = new Map<string, string>();
  for (const part of split(text, ";")) {
    if (part.trim() === "") continue;
    const [, name, quoted, token = ""] = PAIR.exec(part) ?? [];
    const key = name?.toLowerCase();
    if (key === undefined || parameters.has(key)) return {};
    parameters.set(key, quoted === undefined ? token : quoted.replaceAll(/\\(.)/g, "$1"));
  }
  const node = parameters.get("for");
  const proto = parameters.get("proto");
  const host = parameters.get("host");
  return {
    ...(node === undefined ? {} : { node }),
    ...(proto === undefined ? {} : { proto }),
    ...(host === undefined ? {} : { host }),
  };
}

/** Splits outside of quotes; everywhere if a quote has no end, which a client may have sent to hide the rest. */
function split(text: string, separator: string): string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isQuoted && character === "\\") at++;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return isQuoted ? text.split(separator) : [...parts, text.slice(start)];
}
