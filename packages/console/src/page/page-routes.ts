// Serves the page below /ui/.
import { bytes, NO_BODY, defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Bundle } from "./bundle.ts";
import { answerPageFile } from "./page-file.ts";

/** Policy of the page: only its own files, no inline code, no string that becomes markup. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
/** Builds everything below the page's folder. */
export const BUILD_COMMAND = "npm run build:console";
const INDEX = "index.html";

export function createPageRoutes(bundle: Bundle): ApiRoute[] {
  const own = { method: "GET", tag: "Console", access: "public" } as const;
  const problems = { 503: `The page is being built, or is missing: ${BUILD_COMMAND}` };
  return [
    defineRoute({
      ...own,
      path: "/ui",
      summary: "Redirect to the web console",
      status: 308,
      answer: NO_BODY,
      handle: () => new Response(null, { status: 308, headers: { Location: "/ui/" } }),
    }),
    defineRoute({
      ...own,
      path: "/ui/",
      summary: "The web console",
      answer: bytes("text/html"),
      problems,
      handle: ({ headers }) => answerFile(bundle, INDEX, headers),
    }),
    defineRoute({
      ...own,
      path: "/ui/{path*}",
      summary: "Files and pages of the web console",
      answer: bytes("text/html"),
      problems: { ...problems, 404: "There is no such file" },
      handle: ({ headers, params }) => answerFile(bundle, params["path"] ?? "", headers),
    }),
  ];
}

// Addresses of the page's views are not files: they all show the same document.
function answerFile(bundle: Bundle, path: string, headers: Headers): Response {
  const state = bundle.read();
  if (state.kind !== "ready") return answerMissing(state.kind);
  const isFile = path.startsWith("assets/");
  const file = state.files.get(path) ?? (isFile ? undefined : state.files.get(INDEX));
  if (file === undefined) return new Response("Not found.\n", { status: 404 });
  return answerPageFile(file, headers, {
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
  });
}

// Without a script: the policy of API responses allows none.
function answerMissing(kind: "building" | "missing"): Response {
  const [title, text, head] =
    kind === "building"
      ? [
          "The console is being built",
          "This takes a few seconds; the page opens by itself.",
          '<meta http-equiv="refresh" content="1">',
        ]
      : [
          "The console is not built",
          `Run <code>${BUILD_COMMAND}</code> in the checkout, then reload this page.`,
          "",
        ];
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${head}
<title>${title}</title>
<h1>${title}</h1>
<p>${text}</p>
</html>
`;
  return new Response(body, {
    status: 503,
    headers: { "Content-Type": "text/html; charset=utf-8", "Retry-After": "1" },
  });
}
