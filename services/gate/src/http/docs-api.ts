// GET /api/docs and /api/docs/openapi.json.
import { randomBytes } from "node:crypto";
import type { Hono } from "hono";
import type { Controller } from "../control/controller.ts";
import { renderDocsPage } from "./docs-page.ts";
import { buildOpenApi } from "./openapi.ts";

/** Serves the documentation. */
export function serveDocs(app: Hono, controller: Controller): void {
  app.get("/api/docs/openapi.json", (context) => context.json(buildOpenApi(controller.state)));
  app.get("/api/docs", (context) => {
    const nonce = randomBytes(16).toString("base64");
    context.header(
      "Content-Security-Policy",
      `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    context.header("X-Content-Type-Options", "nosniff");
    return context.html(renderDocsPage(buildOpenApi(controller.state), nonce));
  });
}
