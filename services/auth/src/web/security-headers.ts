// Security headers of OAuth and the pages. The kernel sets those of the API.

/** Of all responses under an https public URL: a year, for this host alone, whose neighbours are unknown. */
export const TRANSPORT_SECURITY = "max-age=31536000";

const NO_SNIFFING = { "X-Content-Type-Options": "nosniff" } as const;
/** Of responses that no cache may keep. */
export const NO_STORE = { "Cache-Control": "no-store" } as const;

/** Of everything that OAuth answers except documents. */
export const OAUTH_HEADERS = { ...NO_SNIFFING, "Referrer-Policy": "no-referrer" } as const;
/** Of responses with tokens or details of one client or user. */
export const PRIVATE_HEADERS = { ...NO_STORE, Pragma: "no-cache" } as const;
/** Of discovery documents and key sets, which any page may read. */
export const DOCUMENT_HEADERS = {
  ...NO_SNIFFING,
  "Access-Control-Allow-Origin": "*",
  "Cache-Control": "public, max-age=60",
} as const;
/** Of files under names that change with their content. */
export const ASSET_HEADERS = {
  ...NO_SNIFFING,
  "Cache-Control": "public, max-age=31536000, immutable",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** The policy of the core's pages. Their only inline script posts a form; the core adds its digest. */
export const CORE_PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/** What a page loads in addition to the style sheet; its policy refuses everything else. */
export interface PageSources {
  /** The passkey script, which sends requests to the service. */
  hasScript?: boolean;
  /** Images in `data:` URLs. */
  hasImage?: boolean;
}

/** Headers of a page. */
export function createPageHeaders(path: string, sources: PageSources = {}): Record<string, string> {
  return {
    ...NO_STORE,
    // Forms must report their origin to the service; other sites must not learn the page that a link was on.
    "Referrer-Policy": "same-origin",
    ...NO_SNIFFING,
    "X-Frame-Options": "DENY",
    // Absent on pages of an authorization, whose application may wait in the window that opened this one.
    ...(path.startsWith("/account") ? { "Cross-Origin-Opener-Policy": "same-origin" } : {}),
    "Content-Security-Policy": [
      "default-src 'none'",
      "style-src 'self'",
      ...(sources.hasScript === true ? ["script-src 'self'", "connect-src 'self'"] : []),
      ...(sources.hasImage === true ? ["img-src data:"] : []),
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
  };
}
