// Serves the pages: access checks, CSRF protection, responses.
import type { IncomingMessage, ServerResponse } from "node:http";
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { OAuthError, readForm } from "../oauth/endpoint/endpoint.ts";
import { PICTURE_POLICY } from "../web/image.ts";
import type { NodeHandler } from "../web/router.ts";
import { ASSET_HEADERS, createPageHeaders } from "../web/security-headers.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import type { Asset, Assets } from "./assets.ts";
import type { ErrorPage } from "./error-page.ts";
import type { PageRequest, PageRequestReader } from "./page-request.ts";
import {
  readContinue,
  withQuery,
  type PageResponse,
  type Form,
  type PageRoute,
  type SignedInRequest,
} from "./route.ts";

const NO_FORM: Form = new Map();
// Private: the response may set the cookie of a new browser.
const PICTURE_HEADERS = {
  ...ASSET_HEADERS,
  "Cache-Control": "private, max-age=31536000, immutable",
  "Content-Security-Policy": PICTURE_POLICY,
};

/** Options of the pages. */
export interface PagesOptions {
  routes: readonly PageRoute[];
  assets: Assets;
  reader: PageRequestReader;
  resolver: SessionResolver;
  errors: ErrorPage;
  log: Logger;
  /** True if the user has a second factor or a passkey. */
  hasFactor: (userId: string) => Promise<boolean>;
}

/** Serves the pages. */
export class Pages implements NodeHandler {
  readonly #options: PagesOptions;
  readonly routes: ReadonlyMap<string, string>;
  readonly idPattern = /^[\w-]{1,64}$/;
  readonly #pages: ReadonlyMap<string, ReadonlyMap<string, PageRoute>>;
  readonly #assets: ReadonlyMap<string, Asset>;

  constructor(options: PagesOptions) {
    this.#options = options;
    const byPath = Map.groupBy(options.routes, ({ path }) => path);
    this.#pages = new Map(
      byPath
        .entries()
        .map(([path, routes]) => [
          path,
          new Map(routes.map((route) => [route.method as string, route])),
        ]),
    );
    this.#assets = new Map(options.assets.all.map((asset) => [asset.path, asset]));
    this.routes = new Map([
      ...this.#pages.keys().map((path) => [path, path] as const),
      ...this.#assets.keys().map((path) => [path, "/assets/{id}"] as const),
    ]);
  }

  /** Answers a request of the pages' paths. */
  handle(request: IncomingMessage, response: ServerResponse, path: string, route: string): void {
    const asset = this.#assets.get(path);
    if (asset !== undefined) {
      sendAsset(request, response, asset);
      return;
    }
    this.#serve(this.#pages.get(route)!, request, response).catch((error: unknown) => {
      this.#options.log.error("sending a page failed", { path: route, error });
      response.destroy();
    });
  }

  /** Answers a browser that requests a page that does not exist. */
  showMissing(request: IncomingMessage, response: ServerResponse): void {
    const { reader, errors } = this.#options;
    const answer = errors.showMissing(reader.readLanguage(request));
    send({ incoming: request, outgoing: response, path: "", cookies: [] }, answer);
  }

  async #serve(
    methods: ReadonlyMap<string, PageRoute>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { reader, errors, log } = this.#options;
    const url = new URL(request.url ?? "/", "http://localhost");
    let page: PageRequest | undefined;
    let answer: PageResponse;
    try {
      page = await reader.read(request, response, url);
      answer = await this.#answer(methods, page);
    } catch (error) {
      const failure = toPlatformError(error);
      if (failure.status === 500) log.error("page request failed", { path: url.pathname, error });
      const { Allow: allow } = failure.headers;
      if (allow !== undefined) response.setHeader("Allow", allow);
      if (failure.code === "payload_too_large") response.setHeader("Connection", "close");
      answer = errors.show(reader.readLanguage(request), failure);
    }
    send(
      { incoming: request, outgoing: response, path: url.pathname, cookies: page?.cookies ?? [] },
      answer,
    );
  }

  async #answer(methods: ReadonlyMap<string, PageRoute>, page: PageRequest): Promise<PageResponse> {
    const { reader, resolver, hasFactor } = this.#options;
    const method = page.incoming.method === "HEAD" ? "GET" : (page.incoming.method ?? "GET");
    const route = methods.get(method);
    if (route === undefined) {
      const allow = [...methods.keys()].join(", ");
      throw new PlatformError("method_not_allowed", undefined, { headers: { Allow: allow } });
    }
    const form = method === "POST" ? await readPageForm(page.incoming) : NO_FORM;
    if (method === "POST" && !reader.isOwnForm(page, form.get("csrf")))
      throw new ForeignFormError();
    if (route.access === "public") return route.handle(page, form);
    const { user } = page;
    const back = method === "GET" ? page.path : form.get("back");
    const query = { continue: readContinue(back) };
    if (user === undefined) return { kind: "redirect", to: withQuery("/sign-in", query) };
    const isStrong =
      route.access !== "strong" || user.session.acr === "2" || !(await hasFactor(user.account.id));
    if (!isStrong) {
      return { kind: "redirect", to: withQuery("/confirm", { ...query, level: "2" }) };
    }
    if (route.access !== "signed-in" && !resolver.isFresh(user.session)) {
      return { kind: "redirect", to: withQuery("/confirm", query) };
    }
    return route.handle(page as SignedInRequest, form);
  }
}

/** A form that was not submitted from a page of this browser's session. */
class ForeignFormError extends PlatformError {
  constructor() {
    super("forbidden", "The form is not from a page of this browser's session.");
    this.name = "ForeignFormError";
  }
}

async function readPageForm(request: IncomingMessage): Promise<Form> {
  try {
    const form = await readForm(request);
    for (const value of form.values()) {
      // PostgreSQL cannot store U+0000 in text.
      if (value.includes("\0")) throw new OAuthError(400, "invalid_request", "U+0000 in a field");
    }
    return form;
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    throw new PlatformError(
      error.status === 413 ? "payload_too_large" : "bad_request",
      error.message,
    );
  }
}

function send(
  {
    incoming: request,
    outgoing: response,
    path,
    cookies,
  }: Pick<PageRequest, "incoming" | "outgoing" | "path" | "cookies">,
  answer: PageResponse,
): void {
  if (cookies.length > 0) response.appendHeader("Set-Cookie", cookies);
  const isHead = request.method === "HEAD";
  const headers = createPageHeaders(path, answer.kind === "page" ? answer.sources : undefined);
  switch (answer.kind) {
    case "redirect":
      response.writeHead(303, { ...headers, Location: answer.to, "Content-Length": 0 }).end();
      return;
    case "json": {
      const body = Buffer.from(JSON.stringify(answer.body));
      response
        .writeHead(200, {
          ...headers,
          "Content-Type": "application/json",
          "Content-Length": body.length,
        })
        .end(body);
      return;
    }
    case "page": {
      const body = Buffer.from(answer.page.text);
      response
        .writeHead(answer.status ?? 200, {
          ...headers,
          ...(answer.retryAfter === undefined ? {} : { "Retry-After": answer.retryAfter }),
          "Content-Type": "text/html; charset=utf-8",
          "Content-Length": body.length,
        })
        .end(isHead ? undefined : body);
      return;
    }
    case "picture":
      response
        .writeHead(200, {
          ...PICTURE_HEADERS,
          "Content-Type": answer.type,
          "Content-Length": answer.content.length,
        })
        .end(isHead ? undefined : answer.content);
      return;
    default:
      answer satisfies never;
  }
}

function sendAsset(request: IncomingMessage, response: ServerResponse, asset: Asset): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { Allow: "GET", "Content-Length": 0 }).end();
    return;
  }
  response
    .writeHead(200, {
      "Content-Type": asset.type,
      "Content-Length": asset.content.length,
      ...ASSET_HEADERS,
      ...(asset.type.startsWith("image/") ? { "Content-Security-Policy": PICTURE_POLICY } : {}),
    })
    .end(request.method === "HEAD" ? undefined : asset.content);
}
