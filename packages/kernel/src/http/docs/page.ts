// The documentation page: a self-contained HTML document that displays the OpenAPI document and can send requests.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { loadInlineTokens } from "@platform/look";

/** The page and its required headers. */
export interface DocsPage {
  html: string;
  headers: Record<string, string>;
}

/** Creates the page. Its script and style are allowed by hash; it can connect only to its own origin. */
export function createDocsPage(title: string): DocsPage {
  // Written out: `platform build` embeds files that are read in this form.
  const script = readFileSync(new URL("browser.js", import.meta.url), "utf8");
  const ownStyle = readFileSync(new URL("style.css", import.meta.url), "utf8");
  const style = `${loadInlineTokens()}${ownStyle}`;
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
    "font-src data:",
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
  };
}

function hash(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
