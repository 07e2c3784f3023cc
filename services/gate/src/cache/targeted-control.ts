// CDN-Cache-Control: directives for caches that serve many users, in place of Cache-Control and Expires (RFC 9213).
import type { Directives } from "./cache-control.ts";

const CHARACTERS_MAX = 4_096;
/** A member of a dictionary (RFC 8941 section 3.2): key, an item with an optional value, and parameters. */
const MEMBER =
  /^([a-z*][a-z0-9_.*-]*)(?:=(\?[01]|-?\d{1,15}(?:\.\d{1,3})?|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*|:[A-Za-z0-9+/=]*:))?(?:;[ ]*[a-z*][a-z0-9_.*-]*(?:=(?:\?[01]|-?\d{1,15}(?:\.\d{1,3})?|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*|:[A-Za-z0-9+/=]*:))?)*/;

/**
 * The directives of a targeted field; `undefined` if it is absent, empty or not a dictionary, and must be ignored (RFC 9213
 * section 2.2). A directive that is `?0` is not given.
 */
export function parseTargeted(value: string | undefined): Directives | undefined {
  if (value === undefined || value.length > CHARACTERS_MAX) return undefined;
  const directives = new Map<string, string>();
  let rest = value.trim();
  while (rest !== "") {
    const found = MEMBER.exec(rest);
    if (found === null) return undefined;
    const [text, name = "", item] = found;
    // The last of two equal keys counts (RFC 8941 section 4.2.2).
    directives.delete(name);
    if (item !== "?0") directives.set(name, readItem(item));
    rest = rest.slice(text.length).replace(/^[ \t]+/, "");
    if (rest === "") break;
    if (!rest.startsWith(",")) return undefined;
    rest = rest.slice(1).replace(/^[ \t]+/, "");
    if (rest === "") return undefined;
  }
  return value.trim() === "" ? undefined : directives;
}

function readItem(item: string | undefined): string {
  if (item === undefined || item === "?1") return "";
  return item.startsWith('"') ? item.slice(1, -1).replaceAll(/\\(.)/g, "$1") : item;
}
