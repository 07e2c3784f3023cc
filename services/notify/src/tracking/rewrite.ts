// Adds tracking to HTML: links that lead through this service, and an invisible image.
import type { SignedLinks } from "../link/signed-links.ts";

/** Options of {@link addTracking}. */
export interface TrackedHtmlOptions {
  messageId: string;
  opens: boolean;
  clicks: boolean;
  links: SignedLinks;
}

const LINKS_MAX = 500;
const URL_CHARACTERS_MAX = 2_048;
// An opening tag; quoted values may contain `>`. Every repetition is bounded, so that the time is linear.
const ANCHOR = /<a\b(?:"[^"]{0,8192}"|'[^']{0,8192}'|[^"'<>]){0,200}>/gi;
const HREF = /(\shref\s*=\s*)(?:"([^"]*)"|'([^']*)')/i;
const UNTRACKED = /\sdata-track\s*=\s*["']?off\b/i;
const BODY_END = /<\/body\s{0,16}>/gi;

/** Returns the HTML with tracking. Links other than http and https, links to this service and `data-track="off"` stay. */
export function addTracking(html: string, options: TrackedHtmlOptions): string {
  const linked = options.clicks ? trackLinks(html, options) : html;
  return options.opens ? addImage(linked, options) : linked;
}

function trackLinks(html: string, { messageId, links }: TrackedHtmlOptions): string {
  const unsubscribePrefix = links.prefixOf("unsubscribe");
  let count = 0;
  return html.replaceAll(ANCHOR, (tag) => {
    if (UNTRACKED.test(tag)) return tag;
    return tag.replace(HREF, (whole, start: string, double?: string, single?: string) => {
      const target = decodeEntities(double ?? single ?? "").trim();
      const isTracked =
        /^https?:\/\//i.test(target) &&
        URL.canParse(target) &&
        target.length <= URL_CHARACTERS_MAX &&
        !target.startsWith(unsubscribePrefix);
      if (!isTracked || count >= LINKS_MAX) return whole;
      count += 1;
      return `${start}"${links.format("click", [messageId, 0, target])}"`;
    });
  });
}

function addImage(html: string, { messageId, links }: TrackedHtmlOptions): string {
  const url = links.format("open", [messageId, 0]);
  const image = `<img src="${url}" width="1" height="1" alt="" style="border:0">`;
  let endsAt = html.length;
  for (const { index } of html.matchAll(BODY_END)) endsAt = index;
  return html.slice(0, endsAt) + image + html.slice(endsAt);
}

// Entities that URLs in attributes have.
function decodeEntities(text: string): string {
  const names: Readonly<Record<string, string>> = {
    amp: "&",
    quot: '"',
    apos: "'",
    lt: "<",
    gt: ">",
  };
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|quot|apos|lt|gt));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return names[name.toLowerCase()]!;
      const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
      return code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
    },
  );
}
