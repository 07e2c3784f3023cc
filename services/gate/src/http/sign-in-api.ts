// Pages of browser sign-in below /_platform/oidc/: login, callback and logout.
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import { checkTarget, type OidcSignIn, SIGN_IN_SECONDS } from "../sign-in/oidc-sign-in.ts";
import {
  formatSessionCookies,
  listPendingCookies,
  listSessions,
  SIGN_IN_PATH,
  splitCookies,
} from "../shared-state/index.ts";

const client = z.string().regex(/^[0-9a-f]{16}$/, { error: "expected the client of a route" });
/** Sign-ins that can wait in one browser: their cookies count towards the size of each request. */
const PENDING_MAX = 8;
const LOGOUT_BYTES_MAX = 16_384;
const PAGE_HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

/** Creates the pages. */
export function createSignInRoutes(signIn: OidcSignIn): ApiRoute[] {
  const own = { method: "GET", tag: "Sign-in" } as const;
  return [
    defineRoute({
      ...own,
      path: `${SIGN_IN_PATH}login`,
      summary: "Send a browser to the identity provider of a route",
      query: z.object({ client, to: z.string().default("/") }),
      status: 303,
      answer: NO_BODY,
      handle: ({ query, headers }) =>
        showErrors(async () => {
          const { url, cookie } = await signIn.begin(query.client, query.to, readOrigin(headers));
          const answer = redirect(url);
          const waiting = listPendingCookies(headers.get("cookie") ?? "", isSecure(headers));
          for (const name of waiting.slice(0, -(PENDING_MAX - 1))) {
            setPending(answer, name, "", isSecure(headers));
          }
          setPending(answer, cookie.name, cookie.value, isSecure(headers));
          return answer;
        }),
    }),
    defineRoute({
      ...own,
      path: `${SIGN_IN_PATH}callback`,
      summary: "Finish a sign-in with the code of the identity provider",
      status: 303,
      answer: NO_BODY,
      handle: ({ headers, request }) =>
        showErrors(async () => {
          const callback = new URL(request.url).searchParams;
          const read = (name: string) => readCookie(headers, name);
          const result = await signIn.finish(callback, read, isSecure(headers));
          const answer = redirect(result.target);
          setPending(answer, result.cookie, "", isSecure(headers));
          addSession(answer, result.session.client, result.sealed, isSecure(headers));
          return answer;
        }),
    }),
    defineRoute({
      method: "POST",
      path: `${SIGN_IN_PATH}backchannel`,
      tag: "Sign-in",
      summary: "End the sessions that a logout token of an identity provider names",
      description:
        "OpenID Connect Back-Channel Logout 1.0: register this address as `backchannel_logout_uri`. A token is accepted once.",
      bodyKind: "bytes",
      bodyBytesMax: LOGOUT_BYTES_MAX,
      status: 200,
      problems: { 400: "The logout token is not valid", 503: "The provider does not answer" },
      answer: NO_BODY,
      handle: async ({ body }) => {
        const form = new URLSearchParams(Buffer.from(body).toString("latin1"));
        await signIn.endSessions(form.get("logout_token") ?? "");
        return new Response(null, { headers: { "Cache-Control": "no-store" } });
      },
    }),
    ...(["GET", "POST"] as const).map((method) =>
      defineRoute({
        ...own,
        method,
        path: `${SIGN_IN_PATH}logout`,
        summary: "Sign a browser out, here and at the identity provider",
        description:
          "Ends all sessions of the browser, or that of `client`. With `to`, a path that is registered at the identity provider as redirect after sign-out, the browser returns there.",
        query: z.object({ client: client.optional(), to: z.string().optional() }),
        bodyKind: "bytes",
        status: 303,
        answer: NO_BODY,
        handle: ({ query, headers }) =>
          showErrors(async () => {
            checkOwnPage(headers);
            const cookie = headers.get("cookie") ?? "";
            const secure = isSecure(headers);
            const returnTo =
              query.to === undefined ? undefined : `${readOrigin(headers)}${checkTarget(query.to)}`;
            const ended =
              query.client === undefined ? listSessions(cookie, secure) : [query.client];
            let url: string | undefined;
            for (const each of ended) {
              const { sealed } = splitCookies(cookie, each, secure);
              url = (await signIn.signOut(each, sealed, returnTo)) ?? url;
            }
            const answer = redirect(url ?? returnTo ?? "/");
            for (const each of ended) addSession(answer, each, undefined, secure);
            return answer;
          }),
      }),
    ),
  ];
}

// Another site must not be able to sign a user out.
function checkOwnPage(headers: Headers): void {
  if (headers.get("sec-fetch-site") !== "cross-site") return;
  throw new PlatformError("forbidden", "Another site cannot sign you out.");
}

function redirect(url: string): Response {
  const headers = { Location: url, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer" };
  return new Response(null, { status: 303, headers });
}

function setPending(answer: Response, name: string, value: string, secure: boolean): void {
  const maxAge = value === "" ? 0 : SIGN_IN_SECONDS;
  const scope = secure ? "Path=/; Secure" : `Path=${SIGN_IN_PATH}`;
  answer.headers.append(
    "Set-Cookie",
    `${name}=${value}; ${scope}; HttpOnly; SameSite=Lax; Max-Age=${maxAge}`,
  );
}

function addSession(
  answer: Response,
  of: string,
  sealed: string | undefined,
  secure: boolean,
): void {
  for (const cookie of formatSessionCookies(sealed, { client: of, isSecure: secure })) {
    answer.headers.append("Set-Cookie", cookie);
  }
}

// The workers write both fields themselves.
function readOrigin(headers: Headers): string {
  const host = headers.get("x-forwarded-host") ?? headers.get("host") ?? "localhost";
  const origin = `${isSecure(headers) ? "https" : "http"}://${host}`;
  if (URL.canParse(origin) && new URL(origin).origin === origin.toLowerCase()) return origin;
  // A default port is dropped by `origin`.
  if (/^[a-z0-9.:[\]-]+$/i.test(host)) return origin;
  throw new PlatformError("bad_request", "The Host of the request is not valid.");
}

function isSecure(headers: Headers): boolean {
  return (headers.get("x-forwarded-proto") ?? "").split(",")[0]?.trim() === "https";
}

function readCookie(headers: Headers, name: string): string | undefined {
  for (const pair of (headers.get("cookie") ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name) return value;
  }
  return undefined;
}

async function showErrors(work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (cause) {
    const error = toPlatformError(cause);
    const body = `<!doctype html><meta charset="utf-8"><title>Sign-in failed</title><h1>Sign-in failed</h1><p>${escapeHtml(error.detail)}</p><p><a href="/">Try again</a></p>\n`;
    return new Response(body, { status: error.status, headers: PAGE_HEADERS });
  }
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
