// Facts about the HTML of a mail, read from its opening tags in one pass.

/** Numbers of elements. */
export interface HtmlFacts {
  images: number;
  imagesWithoutAlt: number;
  /** Images that readers fetch from another host, which many mail programs do only on request. */
  remoteImages: number;
  links: number;
  /** Links without a target. */
  emptyLinks: number;
  /** Links to http. */
  insecureLinks: number;
  /** Links whose scheme runs code. */
  scriptLinks: number;
  /** Elements and attributes that mail programs remove: scripts, forms, frames, handlers. */
  active: string[];
  /** True if only the beginning was read. */
  isCut: boolean;
}

const CHARACTERS_MAX = 1024 * 1024;
const TAG_CHARACTERS_MAX = 8_192;
const ACTIVE_MAX = 10;
const ACTIVE = new Set(["script", "form", "iframe", "object", "embed", "base", "applet", "frame"]);
const NAME = /^[a-z][a-z0-9-]*/i;
const ATTRIBUTE = /([a-z][a-z0-9:_-]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/gi;

export function readHtmlFacts(html: string): HtmlFacts {
  const text = html.slice(0, CHARACTERS_MAX);
  const active = new Set<string>();
  const facts: HtmlFacts = {
    images: 0,
    imagesWithoutAlt: 0,
    remoteImages: 0,
    links: 0,
    emptyLinks: 0,
    insecureLinks: 0,
    scriptLinks: 0,
    active: [],
    isCut: text.length < html.length,
  };
  for (const { name, attributes } of listTags(text)) {
    if (ACTIVE.has(name)) active.add(`<${name}>`);
    if (name === "meta" && /refresh/i.test(attributes.get("http-equiv") ?? "")) {
      active.add("<meta refresh>");
    }
    for (const key of attributes.keys()) if (/^on[a-z]+$/.test(key)) active.add(key);
    if (name === "img") countImage(facts, attributes);
    if (name === "a" && attributes.has("href")) countLink(facts, attributes.get("href")!.trim());
  }
  return { ...facts, active: [...active].slice(0, ACTIVE_MAX) };
}

function countImage(facts: HtmlFacts, attributes: ReadonlyMap<string, string>): void {
  facts.images += 1;
  if (!attributes.has("alt")) facts.imagesWithoutAlt += 1;
  if (/^(?:https?:)?\/\//i.test(attributes.get("src")?.trim() ?? "")) facts.remoteImages += 1;
}

function countLink(facts: HtmlFacts, target: string): void {
  facts.links += 1;
  if (target === "" || target === "#") facts.emptyLinks += 1;
  // Browsers ignore control characters and spaces within a scheme.
  const scheme = target.slice(0, 64).replaceAll(/[\s\p{Cc}]/gu, "");
  if (/^http:/i.test(scheme)) facts.insecureLinks += 1;
  if (/^(?:javascript|vbscript|data):/i.test(scheme)) facts.scriptLinks += 1;
}

function* listTags(
  text: string,
): Generator<{ name: string; attributes: ReadonlyMap<string, string> }> {
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", at)) {
    if (text.startsWith("<!--", at)) {
      const end = text.indexOf("-->", at + 4);
      if (end === -1) return;
      at = end + 3;
      continue;
    }
    const end = findTagEnd(text, at + 1);
    const source = text.slice(at + 1, end);
    const name = NAME.exec(source)?.[0].toLowerCase();
    at = Math.max(end, at + 1);
    if (name !== undefined) yield { name, attributes: readAttributes(source.slice(name.length)) };
  }
}

// Quoted values may contain `>`. Longer tags are cut.
function findTagEnd(text: string, start: number): number {
  const last = Math.min(text.length, start + TAG_CHARACTERS_MAX);
  let quote = "";
  for (let at = start; at < last; at += 1) {
    const character = text[at]!;
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if (character === '"' || character === "'") quote = character;
    else if (character === ">") return at;
  }
  return last;
}

function readAttributes(source: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, name = "", double, single, bare] of source.matchAll(ATTRIBUTE)) {
    const key = name.toLowerCase();
    if (!found.has(key)) found.set(key, double ?? single ?? bare ?? "");
  }
  return found;
}
