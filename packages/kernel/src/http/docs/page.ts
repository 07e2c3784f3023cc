// The documentation page: an HTML document that displays the OpenAPI document and can send requests, and its fonts.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { FONT_CACHE_CONTROL, loadLook } from "@platform/look";

/** Path of the page; its fonts are below. */
const DOCS_PATH = "/api/docs";

/** A document and its headers. */
interface DocsFile {
  body: string | Uint8Array<ArrayBuffer>;
  headers: Record<string, string>;
}

/** The page and its required headers. */
export interface DocsPage {
  html: string;
  headers: Record<string, string>;
  /** By path, with a hash of the content in their names; none in executables. */
  fonts: ReadonlyMap<string, DocsFile>;
}

/** Creates the page. Its script and style are allowed by hash; it can connect only to its own origin. */
export function createDocsPage(title: string): DocsPage {
  // Written out: `platform build` embeds files that are read in this form.
  const script = readFileSync(new URL("browser.js", import.meta.url), "utf8");
  const ownStyle = readFileSync(new URL("style.css", import.meta.url), "utf8");
  const { tokens, fonts } = loadLook(`${DOCS_PATH}/fonts/`);
  const style = `${tokens}${ownStyle}`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title>
<style>${style}</style>
</head>
<body>
<noscript>This page needs JavaScript; the same content is at <a href="/api/docs/openapi.json">openapi.json</a>.</noscript>
<main id="api"></main>
<script type="module">${script}</script>
</body>
</html>
`;
  const policy = [
    "default-src 'none'",
    `script-src '${hash(script)}'`,
    `style-src '${hash(style)}'`,
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    html,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy.join("; "),
    },
    fonts: new Map(
      fonts.map(({ path, type, content }) => [
        path,
        {
          body: new Uint8Array(content),
          headers: { "Content-Type": type, "Cache-Control": FONT_CACHE_CONTROL },
        },
      ]),
    ),
  };
}

function hash(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
