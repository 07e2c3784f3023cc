// One request of a browser: its language, its session, and the token that its forms must carry.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HeaderReader } from "@platform/kernel/http";
import type { ClientAddress } from "../web/client-address.ts";
import type { Cookies } from "../web/cookies.ts";
import { readHeaders, readPeer } from "../web/request.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import type { SessionInfo } from "../session/session.ts";
import type { Origin } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import { chooseLanguage, findLanguage, type Language } from "./language/language.ts";

const BROWSER_ID_BYTES = 16;
const BROWSER_ID = /^[\w-]{22}$/;

/** Somebody who is signed in. */
export interface Visitor {
  readonly account: Account;
  readonly session: SessionInfo;
}

/** A request as pages see it. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: HeaderReader;
  /** The path without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly language: Language;
  readonly origin: Origin;
  /** Undefined where nobody is signed in. */
  readonly visitor: Visitor | undefined;
  /** For the hidden field `csrf`. */
  readonly csrf: string;
  /** `Set-Cookie` lines of the answer. */
  readonly cookies: string[];
}

/** What visits are read with. */
export interface VisitParts {
  cookies: Cookies;
  resolver: SessionResolver;
  addresses: ClientAddress;
  publicUrl: string;
  /** Keys the CSRF tokens. */
  secret: Buffer;
}

/** Reads visits. */
export class VisitReader {
  readonly #parts: VisitParts;
  readonly #key: Buffer;

  constructor(parts: VisitParts) {
    this.#parts = parts;
    this.#key = createHmac("sha256", parts.secret).update("page forms").digest();
  }

  /** Reads one. A browser that comes for the first time is named by a cookie; a session's token may be renewed. */
  async read(request: IncomingMessage, response: ServerResponse, url: URL): Promise<Visit> {
    const headers = readHeaders(request);
    const cookies: string[] = [];
    const visitor = await this.#findVisitor(headers, cookies);
    return {
      request,
      response,
      headers,
      path: url.pathname,
      query: url.searchParams,
      language: this.readLanguage(request),
      origin: this.#parts.addresses.readOrigin(readPeer(request), headers),
      visitor,
      csrf: this.#sign(this.#nameBrowser(headers, cookies), visitor),
      cookies,
    };
  }

  /** The language that the browser chose on its way to an application, or else prefers. */
  readLanguage(request: IncomingMessage): Language {
    return (
      findLanguage(this.#parts.cookies.read(readHeaders(request), "platform_language") ?? "") ??
      chooseLanguage(request.headers["accept-language"])
    );
  }

  /**
   * Whether a form comes from a page that this browser was given, in this session: browsers say where a request comes
   * from, and the token cannot be known elsewhere.
   */
  isOwnForm(visit: Visit, token: string | undefined): boolean {
    const { headers } = visit;
    const site = headers.get("sec-fetch-site");
    if (site !== null && site !== "same-origin") return false;
    const origin = headers.get("origin");
    if (origin !== null && origin !== this.#parts.publicUrl) return false;
    const [given, right] = [Buffer.from(token ?? ""), Buffer.from(visit.csrf)];
    return given.length === right.length && timingSafeEqual(given, right);
  }

  async #findVisitor(headers: HeaderReader, cookies: string[]): Promise<Visitor | undefined> {
    const { resolver } = this.#parts;
    const token = resolver.readCookie(headers);
    const found = token === undefined ? undefined : await resolver.use(token);
    if (found?.renewedToken !== undefined) cookies.push(resolver.formatCookie(found.renewedToken));
    return found;
  }

  #nameBrowser(headers: HeaderReader, cookies: string[]): string {
    const known = this.#parts.cookies.read(headers, "platform_browser");
    if (known !== undefined && BROWSER_ID.test(known)) return known;
    const name = randomBytes(BROWSER_ID_BYTES).toString("base64url");
    cookies.push(this.#parts.cookies.format("platform_browser", name, undefined));
    return name;
  }

  #sign(browser: string, visitor: Visitor | undefined): string {
    return createHmac("sha256", this.#key)
      .update(`${browser}\0${visitor?.session.id ?? ""}`)
      .digest("base64url");
  }
}
