// A browser's request for a page: language, session, CSRF token.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HeaderReader } from "@platform/kernel/http";
import type { SessionInfo } from "../session/session.ts";
import type { Origin } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import type { ClientAddress } from "../web/client-address.ts";
import type { Cookies } from "../web/cookies.ts";
import { readHeaders, readPeer } from "../web/request.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import { chooseLanguage, findLanguage, type Language } from "./language/language.ts";

const BROWSER_ID_BYTES = 16;
const BROWSER_ID = /^[\w-]{22}$/;

/** The user who is signed in. */
export interface CurrentUser {
  readonly account: Account;
  readonly session: SessionInfo;
}

/** A request as page handlers see it. */
export interface PageRequest {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly headers: HeaderReader;
  /** The path without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly language: Language;
  readonly origin: Origin;
  /** `undefined` if the browser is not signed in. */
  readonly user: CurrentUser | undefined;
  /** Value of the hidden field `csrf`. */
  readonly csrf: string;
  /** `Set-Cookie` values of the response. */
  readonly cookies: string[];
}

export interface PageRequestReaderOptions {
  cookies: Cookies;
  resolver: SessionResolver;
  addresses: ClientAddress;
  publicUrl: string;
  /** Derives the key of CSRF tokens. */
  secret: Buffer;
}

export class PageRequestReader {
  readonly #options: PageRequestReaderOptions;
  readonly #key: Buffer;

  constructor(options: PageRequestReaderOptions) {
    this.#options = options;
    this.#key = createHmac("sha256", options.secret).update("page forms").digest();
  }

  /** Reads a request. Browsers without an id get one in a cookie; the session's token may be renewed. */
  async read(request: IncomingMessage, response: ServerResponse, url: URL): Promise<PageRequest> {
    const headers = readHeaders(request);
    const cookies: string[] = [];
    const user = await this.#findVisitor(headers, cookies);
    return {
      incoming: request,
      outgoing: response,
      headers,
      path: url.pathname,
      query: url.searchParams,
      language: this.readLanguage(request),
      origin: this.#options.addresses.readOrigin(readPeer(request), headers),
      user,
      csrf: this.#sign(this.#nameBrowser(headers, cookies), user),
      cookies,
    };
  }

  /** The language requested by an application, or else preferred by the browser. */
  readLanguage(request: IncomingMessage): Language {
    return (
      findLanguage(this.#options.cookies.read(readHeaders(request), "platform_language") ?? "") ??
      chooseLanguage(request.headers["accept-language"])
    );
  }

  /**
   * True if a form was submitted from a page of this browser's session: browsers report the origin of a request, and
   * the token is unknown to other sites.
   */
  isOwnForm(page: PageRequest, token: string | undefined): boolean {
    const { headers } = page;
    const site = headers.get("sec-fetch-site");
    if (site !== null && site !== "same-origin") return false;
    const origin = headers.get("origin");
    if (origin !== null && origin !== this.#options.publicUrl) return false;
    const [given, right] = [Buffer.from(token ?? ""), Buffer.from(page.csrf)];
    return given.length === right.length && timingSafeEqual(given, right);
  }

  async #findVisitor(headers: HeaderReader, cookies: string[]): Promise<CurrentUser | undefined> {
    const { resolver } = this.#options;
    const token = resolver.readCookie(headers);
    const found = token === undefined ? undefined : await resolver.use(token);
    if (found?.renewedToken !== undefined) cookies.push(resolver.formatCookie(found.renewedToken));
    return found;
  }

  #nameBrowser(headers: HeaderReader, cookies: string[]): string {
    const known = this.#options.cookies.read(headers, "platform_browser");
    if (known !== undefined && BROWSER_ID.test(known)) return known;
    const name = randomBytes(BROWSER_ID_BYTES).toString("base64url");
    cookies.push(this.#options.cookies.format("platform_browser", name, undefined));
    return name;
  }

  #sign(browser: string, user: CurrentUser | undefined): string {
    return createHmac("sha256", this.#key)
      .update(`${browser}\0${user?.session.id ?? ""}`)
      .digest("base64url");
  }
}
