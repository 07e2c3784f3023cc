// Share links in public requests: opening them, confirming one-time links, and the cookies that they hand out.
import { Known, Method } from "@platform/http1";
import type { Clock } from "@platform/kernel/time";
import type { ShareRow } from "../database/schema.ts";
import type { ShareLinks } from "../share/share-links.ts";
import { TOKEN_PREFIX } from "../share/share-token.ts";
import type { Admission } from "./admission.ts";
import { answerTunnelError } from "./answers.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";
import type { RelayExchange } from "./request-state.ts";
import type { Throttles } from "./throttle.ts";

/** Options of {@link ShareAccess}. */
export interface ShareAccessOptions {
  links: ShareLinks;
  throttles: Throttles;
  clock: Clock;
  /** True if the tunnels' public URLs are https. */
  isSecure: () => boolean;
}

/** With the prefix `__Host-` other tunnels cannot set it; browsers accept that over TLS only. */
const COOKIE_NAME = "platform_share";
const SECURE_COOKIE_NAME = `__Host-${COOKIE_NAME}`;
const CONFIRM = "platform_share_confirm=1";
const ANSWERED: Admission = { kind: "answered" };

const PAGE_HEADERS = [
  ["Content-Type", "text/html; charset=utf-8"],
  ["Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'"],
  ["Cache-Control", "no-store"],
  ["Referrer-Policy", "no-referrer"],
] as const;

/** Admits requests by share links. */
export class ShareAccess {
  readonly #options: ShareAccessOptions;

  constructor(options: ShareAccessOptions) {
    this.#options = options;
  }

  /**
   * Handles a request whose query contains the token of a link; undefined for others. Navigations are redirected to the
   * URL without the token, with a cookie; a one-time link asks for a confirmation first, so that previews of the link do
   * not use it up. Other requests are forwarded without the token. `isOpen`: the tunnel requires no credentials.
   */
  admitLink(
    exchange: RelayExchange,
    tunnel: ConnectedTunnel,
    isOpen: boolean,
  ): Admission | Promise<Admission> | undefined {
    const query = exchange.head.queryString();
    if (query === undefined || !query.includes(`token=${TOKEN_PREFIX}`)) return undefined;
    const { token, rest, isConfirmed } = splitQuery(query);
    if (token === undefined) return undefined;
    const verdict = this.#options.links.judge(tunnel.row.id, token);
    switch (verdict.kind) {
      case "forged":
        // On an open tunnel it may be a token of the local service; elsewhere other credentials may follow.
        return isOpen ? undefined : this.#refuse(exchange);
      case "gone":
        return this.#answerGone(exchange);
      case "valid":
        return this.#open(exchange, verdict.share, rest, isConfirmed);
      default:
        return verdict satisfies never;
    }
  }

  /**
   * True if the request has the cookie of a link of this tunnel. The cookie is removed from the forwarded request, valid
   * or not: `userData.cookie` is set.
   */
  readCookie(exchange: RelayExchange, tunnel: ConnectedTunnel): boolean {
    const values = takeCookies(exchange);
    return values.some((value) => this.#options.links.admitsCookie(tunnel.row.id, value));
  }

  #open(
    exchange: RelayExchange,
    share: Readonly<ShareRow>,
    rest: string,
    isConfirmed: boolean,
  ): Admission | Promise<Admission> {
    const { methodId } = exchange.head;
    const isNavigation = methodId === Method.GET && prefersPage(exchange);
    if (share.one_time === 0) {
      return isNavigation ? this.#enter(exchange, share, rest) : this.#pass(exchange, rest);
    }
    const isProbe = methodId === Method.HEAD || methodId === Method.OPTIONS;
    if (isNavigation || isProbe) return this.#askToConfirm(exchange);
    return this.#spend(exchange, share, () =>
      isConfirmed && methodId === Method.POST
        ? this.#enter(exchange, share, rest)
        : this.#pass(exchange, rest),
    );
  }

  async #spend(
    exchange: RelayExchange,
    share: Readonly<ShareRow>,
    next: () => Admission,
  ): Promise<Admission> {
    const { sequence } = exchange;
    const isFirst = await this.#options.links.spend(share);
    if (exchange.sequence !== sequence || exchange.aborted) return ANSWERED;
    return isFirst ? next() : this.#answerGone(exchange);
  }

  /** Hands out the cookie and redirects to the same URL without the token. */
  #enter(exchange: RelayExchange, share: Readonly<ShareRow>, rest: string): Admission {
    // A path of several slashes would be the name of another host.
    const path = exchange.head.pathString().replace(/^[/\\]+/, "/");
    exchange.respond({
      status: 303,
      headers: [
        ["Location", rest === "" ? path : `${path}?${rest}`],
        ["Set-Cookie", this.#formatCookie(share)],
        ["Cache-Control", "no-store"],
        ["Referrer-Policy", "no-referrer"],
      ],
      body: "",
    });
    return ANSWERED;
  }

  #formatCookie(share: Readonly<ShareRow>): string {
    const { links, clock, isSecure } = this.#options;
    const secure = isSecure();
    const name = secure ? SECURE_COOKIE_NAME : COOKIE_NAME;
    const leftSeconds = Math.max(1, Math.floor((share.expires_at - clock.now()) / 1_000));
    const attributes = `Path=/; Max-Age=${leftSeconds}; HttpOnly; SameSite=Lax`;
    return `${name}=${links.issueCookie(share)}; ${attributes}${secure ? "; Secure" : ""}`;
  }

  #pass(exchange: RelayExchange, rest: string): Admission {
    exchange.forwardQuery = rest;
    const cookie = takeCookies(exchange).length > 0;
    return { kind: "admitted", strip: { cookie, authorization: false } };
  }

  #askToConfirm(exchange: RelayExchange): Admission {
    exchange.respond({
      status: 200,
      headers: PAGE_HEADERS,
      body: formatConfirmation(exchange.head.queryString() ?? ""),
    });
    return ANSWERED;
  }

  #answerGone(exchange: RelayExchange): Admission {
    answerTunnelError(exchange, "link_expired");
    return ANSWERED;
  }

  #refuse(exchange: RelayExchange): Admission {
    const { tokens } = this.#options.throttles;
    const { clientAddress } = exchange.userData.forwarding;
    const waitSeconds = tokens.waitSeconds(clientAddress);
    if (waitSeconds > 0) {
      answerTunnelError(exchange, "too_many_attempts", [["Retry-After", String(waitSeconds)]]);
      return ANSWERED;
    }
    tokens.noteFailure(clientAddress);
    answerTunnelError(exchange, "unauthorized", [["WWW-Authenticate", "Bearer"]]);
    return ANSWERED;
  }
}

/** Splits a query into the first token of a link, and the rest as it was sent. */
function splitQuery(query: string): { token?: string; rest: string; isConfirmed: boolean } {
  const pairs = query.split("&");
  const at = pairs.findIndex((pair) => pair.startsWith(`token=${TOKEN_PREFIX}`));
  const token = pairs[at]?.slice("token=".length);
  const rest = pairs.filter((pair, index) => index !== at && pair !== CONFIRM).join("&");
  const isConfirmed = pairs.includes(CONFIRM);
  return token === undefined ? { rest, isConfirmed } : { token, rest, isConfirmed };
}

/** Values of the relay's cookies; `userData.cookie` becomes the field without them if there are any. */
function takeCookies({ head, userData }: RelayExchange): string[] {
  const { fields } = head;
  const pairs: string[] = [];
  for (let line = fields.first(Known.Cookie); line !== -1; line = fields.next(line)) {
    pairs.push(...fields.value(line).split(";"));
  }
  const own = pairs.filter(isOwnCookie);
  if (own.length === 0) return own;
  const kept = pairs.filter((pair) => !isOwnCookie(pair)).map((pair) => pair.trim());
  userData.cookie = kept.join("; ");
  return own.map((pair) => pair.slice(pair.indexOf("=") + 1).trim());
}

function isOwnCookie(pair: string): boolean {
  const name = pair.slice(0, pair.indexOf("=")).trim();
  return name === COOKIE_NAME || name === SECURE_COOKIE_NAME;
}

function prefersPage({ head }: RelayExchange): boolean {
  return (head.fields.get(Known.Accept) ?? "").toLowerCase().includes("text/html");
}

/** Page of a one-time link. Its form sends the same query, which the parser has restricted to printable characters. */
function formatConfirmation(query: string): string {
  const action = `?${query}&${CONFIRM}`
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>One-time link</title>
<h1>This link works once</h1>
<p>After you open it, it cannot be used again.</p>
<form method="post" action="${action}"><button autofocus>Open</button></form>
</html>
`;
}
