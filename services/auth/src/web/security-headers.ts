// Security headers of OAuth and the pages. The kernel sets those of the API.

/** Set on all responses under an https public URL: one year, for this host only. */
export const TRANSPORT_SECURITY = "max-age=31536000";

const NO_SNIFFING = { "X-Content-Type-Options": "nosniff" } as const;
/** Responses that must not be cached. */
export const NO_STORE = { "Cache-Control": "no-store" } as const;

/** All OAuth responses except documents. */
export const OAUTH_HEADERS = { ...NO_SNIFFING, "Referrer-Policy": "no-referrer" } as const;
/** Responses with tokens or with details of a client or user. */
export const PRIVATE_HEADERS = { ...NO_STORE, Pragma: "no-cache" } as const;
/** Discovery documents and key sets, which any page may read. */
export const DOCUMENT_HEADERS = {
  ...NO_SNIFFING,
  "Access-Control-Allow-Origin": "*",
  "Cache-Control": "public, max-age=60",
} as const;
/** Assets, whose names change with their content. */
export const ASSET_HEADERS = {
  ...NO_SNIFFING,
  "Cache-Control": "public, max-age=31536000, immutable",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** The policy of the core's pages. Their only inline script posts a form; the core adds its digest. */
export const CORE_PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/**
 * Resources that a page loads in addition to the service's style sheet, fonts and pictures; its policy blocks all others.
 */
export interface PageSources {
  /** Scripts of the service. */
  hasScript?: boolean;
  /** Its scripts send requests to the service. */
  canConnect?: boolean;
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
      "font-src 'self'",
      `img-src 'self'${sources.hasImage === true ? " data:" : ""}`,
      ...(sources.hasScript === true ? ["script-src 'self'"] : []),
      ...(sources.canConnect === true ? ["connect-src 'self'"] : []),
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join("; "),
  };
}
