// Sign-in of users by the authorization code flow with PKCE, and their sessions in an encrypted cookie.
import { hash, hkdfSync } from "node:crypto";
import * as oidc from "openid-client";
import { createSecretBox, type SecretBox } from "@platform/kernel/secrets";
import { HttpError } from "../error/http-error.ts";
import type { ServiceRequest } from "../request/request.ts";
import { reply, type Reply } from "../result/reply.ts";
import { declared } from "../service/declared.ts";
import { getIdentity } from "./client-token.ts";
import { requireSettings } from "./required.ts";

/** The parts of a request that sign-ins read. */
export type SignInRequest = Pick<
  ServiceRequest<string, unknown, unknown>,
  "method" | "headers" | "cookies" | "query"
>;

/** A user who has signed in. */
export interface SignedInUser {
  /** Id of the user, which never changes (`sub`). */
  readonly id: string;
  /** "" if identity does not provide it. */
  readonly username: string;
  /** Display name; the username if there is none. */
  readonly name: string;
  /** Undefined if the user has none. */
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
}

/** Options of `auth.signIn`. */
export interface SignInOptions {
  /** Path to which the user returns; default `/`. */
  returnTo?: string;
  /** Default `openid profile email`. */
  scope?: string;
}

/** Options of `auth.signOut`. */
export interface SignOutOptions {
  /** Path after the sign-out; default `/`. */
  returnTo?: string;
  /** True ends the session at identity as well, after a confirmation there. */
  everywhere?: boolean;
}

interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly returnTo: string;
  readonly endsS: number;
}

interface Session {
  readonly user: SignedInUser;
  readonly endsS: number;
}

const PENDING_S = 600;
/** Afterwards the user is sent to identity again, which returns immediately while its own session lives. */
const SESSION_S = 3_600;
const READ_ONLY = new Set(["GET", "HEAD", "OPTIONS"]);

interface Context {
  readonly redirectUrl: URL;
  readonly isSecure: boolean;
  readonly cookie: string;
  readonly box: SecretBox;
}

let context: Context | undefined;

/** Redirects the browser to identity. */
export async function startSignIn({
  returnTo = "/",
  scope = "openid profile email",
}: SignInOptions): Promise<Reply> {
  const { redirectUrl, isSecure, cookie, box } = getContext();
  const identity = await getIdentity();
  const pending: PendingSignIn = {
    state: oidc.randomState(),
    nonce: oidc.randomNonce(),
    verifier: oidc.randomPKCECodeVerifier(),
    returnTo: checkPath(returnTo, redirectUrl),
    endsS: nowS() + PENDING_S,
  };
  const { state, nonce, verifier } = pending;
  const location = oidc.buildAuthorizationUrl(identity, {
    redirect_uri: redirectUrl.href,
    scope,
    state,
    nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  const name = namePending(cookie, state);
  const value = box.seal(JSON.stringify(pending), name);
  return reply(undefined, {
    status: 303,
    headers: { Location: location.href, "Cache-Control": "no-store" },
    cookies: { [name]: { value, maxAge: PENDING_S, secure: isSecure } },
  });
}

/** Exchanges the code of identity's redirect, sets the session cookie and returns the user to the application. */
export async function finishSignIn({ query, cookies }: SignInRequest): Promise<Reply> {
  const { redirectUrl, isSecure, cookie, box } = getContext();
  const parameters = readQuery(query);
  const name = namePending(cookie, parameters.get("state") ?? "");
  const pending = openCookie(box, cookies[name], name) as PendingSignIn | undefined;
  if (pending === undefined || pending.state !== parameters.get("state")) {
    throw new HttpError(
      400,
      `This sign-in has expired, or began at another address. Open ${redirectUrl.origin} and sign in again.`,
    );
  }
  const user = await exchange(parameters, pending, redirectUrl);
  const session: Session = { user, endsS: nowS() + SESSION_S };
  return reply(undefined, {
    status: 303,
    headers: { Location: pending.returnTo, "Cache-Control": "no-store" },
    cookies: {
      [name]: { value: "", maxAge: 0, secure: isSecure },
      [cookie]: {
        value: box.seal(JSON.stringify(session), cookie),
        maxAge: SESSION_S,
        secure: isSecure,
      },
    },
  });
}

/** The cookie of a user who has signed in, for tests. */
export function createSessionCookie(user: SignedInUser): string {
  const { cookie, box } = getContext();
  const session: Session = { user, endsS: nowS() + SESSION_S };
  return `${cookie}=${box.seal(JSON.stringify(session), cookie)}`;
}

/**
 * The user of a request; undefined without a valid session. Requests that change something are refused with 403 if a page
 * of another origin sent them.
 */
export function findUser({ method, headers, cookies }: SignInRequest): SignedInUser | undefined {
  const { cookie, box } = getContext();
  const session = openCookie(box, cookies[cookie], cookie) as Session | undefined;
  if (session === undefined) return undefined;
  if (!READ_ONLY.has(method)) refuseOtherOrigins(headers);
  return session.user;
}

/** Removes the session cookie. */
export async function endSession({
  returnTo = "/",
  everywhere = false,
}: SignOutOptions): Promise<Reply> {
  const { redirectUrl, isSecure, cookie } = getContext();
  const location = everywhere
    ? oidc.buildEndSessionUrl(await getIdentity()).href
    : checkPath(returnTo, redirectUrl);
  return reply(undefined, {
    status: 303,
    headers: { Location: location, "Cache-Control": "no-store" },
    cookies: { [cookie]: { value: "", maxAge: 0, secure: isSecure } },
  });
}

// Cookies do not distinguish ports: the names contain the client, for several applications on one machine.
function getContext(): Context {
  if (context !== undefined) return context;
  const {
    oidc_redirect_url: redirect,
    oidc_client_id: id,
    oidc_client_secret: secret,
  } = requireSettings("auth", [
    "oidc_redirect_url",
    "oidc_issuer",
    "oidc_client_id",
    "oidc_client_secret",
  ]);
  const redirectUrl = new URL(redirect);
  const isSecure = redirectUrl.protocol === "https:";
  const key = Buffer.from(hkdfSync("sha256", secret, id, "platform service sessions", 32));
  const suffix = hash("sha256", id, "hex").slice(0, 8);
  context = {
    redirectUrl,
    isSecure,
    cookie: `${isSecure ? "__Host-" : ""}session-${suffix}`,
    box: createSecretBox("service", [key]),
  };
  return context;
}

// One cookie per attempt: several windows may sign in concurrently.
function namePending(cookie: string, state: string): string {
  return `${cookie}-${hash("sha256", state, "hex").slice(0, 8)}`;
}

async function exchange(
  parameters: URLSearchParams,
  { state, nonce, verifier }: PendingSignIn,
  redirectUrl: URL,
): Promise<SignedInUser> {
  const current = new URL(redirectUrl);
  current.search = parameters.toString();
  try {
    const tokens = await oidc.authorizationCodeGrant(await getIdentity(), current, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    return readUser(tokens.claims()!);
  } catch (error) {
    if (error instanceof oidc.AuthorizationResponseError) {
      throw new HttpError(403, `The sign-in was refused: ${error.error}.`, { cause: error });
    }
    if (error instanceof oidc.ResponseBodyError && error.error === "invalid_grant") {
      throw new HttpError(400, "This sign-in was completed before. Sign in again.", {
        cause: error,
      });
    }
    if (error instanceof oidc.ClientError && error.code === "OAUTH_INVALID_RESPONSE") {
      throw new HttpError(400, "The answer of the sign-in is invalid. Sign in again.", {
        cause: error,
      });
    }
    throw error;
  }
}

function readUser(claims: oidc.IDToken): SignedInUser {
  const text = (name: string): string => {
    const value = claims[name];
    return typeof value === "string" ? value : "";
  };
  const username = text("preferred_username");
  const email = text("email");
  return {
    id: claims.sub,
    username,
    name: text("name") || username || claims.sub,
    email: email === "" ? undefined : email,
    isEmailVerified: claims["email_verified"] === true,
  };
}

function openCookie(
  box: SecretBox,
  sealed: string | undefined,
  place: string,
): { endsS: number } | undefined {
  if (sealed === undefined || sealed === "") return undefined;
  try {
    const content = JSON.parse(box.open(sealed, place)) as { endsS: number };
    return content.endsS > nowS() ? content : undefined;
  } catch {
    // Changed, or encrypted with the secret of an earlier client.
    return undefined;
  }
}

// SameSite=Lax admits requests from other ports and subdomains of the site.
function refuseOtherOrigins(headers: SignInRequest["headers"]): void {
  const site = headers.get("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  throw new HttpError(403, "Pages of other origins may not act for the user.");
}

function checkPath(path: string, base: URL): string {
  const url = URL.parse(path, base);
  if (path.startsWith("/") && url !== null && url.origin === base.origin) {
    return `${url.pathname}${url.search}${url.hash}`;
  }
  throw new TypeError(`auth: returnTo must be a path of the service, not ${JSON.stringify(path)}`);
}

function readQuery(query: unknown): URLSearchParams {
  if (query instanceof URLSearchParams) return query;
  throw new TypeError("auth.finishSignIn: the route must not have a query schema");
}

function nowS(): number {
  return Math.floor(declared.environment.clock.now() / 1_000);
}
