// Requests that programs make without a reader: scanners of mail gateways, previews, prefetching.
//
// A request is automatic if one of these is true:
//   1. it is not a GET: scanners look with HEAD;
//   2. it says that it prefetches or previews (Sec-Purpose, Purpose, X-Purpose, X-Moz);
//   3. its User-Agent is missing, or is that of a program, a scanner, or a preview;
//   4. it came before the message was delivered, or within 2 s of it: gateways scan before they deliver;
//   5. it follows another link of the same message within 1 s: scanners follow all links.
//
// Image proxies of mailbox providers fetch for a reader and count. Apple's Mail Privacy Protection fetches all images
// without a reader, with the User-Agent of a browser: it cannot be told apart, so opens are an upper bound.

/** Facts of a request. */
export interface TrackedRequest {
  method: string;
  headers: Pick<Headers, "get">;
  nowMs: number;
  /** Time at which a relay accepted the message; undefined if none has. */
  sentAtMs: number | undefined;
  /** Time of the last click on another link of the message. */
  otherClickAtMs: number | undefined;
}

const SCAN_MS = 2_000;
const NEXT_LINK_MS = 1_000;
const PURPOSE_HEADERS = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
const PURPOSES = /prefetch|preview|prerender/i;
const PROGRAMS =
  /bot\b|crawl|spider|slurp|scan|preview|prefetch|monitor|headless|phantom|curl\/|wget|python|java\/|okhttp|go-http|node|axios|ruby|perl|libwww|httpclient|barracuda|mimecast|proofpoint|fireeye|forcepoint|symantec|trendmicro|safelinks|urldefense|facebookexternalhit|whatsapp|telegram|slack|skype|discord/i;
const PROXIES = /GoogleImageProxy|YahooMailProxy/i;

/** True if a request is automatic. */
export function isAutomatic(request: TrackedRequest): boolean {
  const { method, headers, nowMs, sentAtMs, otherClickAtMs } = request;
  if (method !== "GET") return true;
  if (PURPOSE_HEADERS.some((name) => PURPOSES.test(headers.get(name) ?? ""))) return true;
  const agent = headers.get("user-agent") ?? "";
  if (agent === "" || (PROGRAMS.test(agent) && !PROXIES.test(agent))) return true;
  if (sentAtMs === undefined || nowMs - sentAtMs < SCAN_MS) return true;
  return otherClickAtMs !== undefined && nowMs - otherClickAtMs < NEXT_LINK_MS;
}
