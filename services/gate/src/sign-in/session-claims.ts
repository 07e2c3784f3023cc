// The claims of a browser's session: from its tokens, and from those of each renewal.
import { PlatformError } from "@platform/kernel/errors";
import type { BrowserSession } from "../shared-state/index.ts";
import type { UserTokens } from "./oidc-provider.ts";

/** Claims that identify the caller, and those that revocations can name. */
const CLAIMS: readonly string[] = [
  "iss",
  "sub",
  "sid",
  "jti",
  "kid",
  "client_id",
  "epoch",
  "session_exp",
  "username",
  "preferred_username",
  "roles",
  "tenant",
  "scope",
];

/** A refresh must be for the user who signed in (OpenID Connect Core 1.0 section 12.2). */
export function checkUser({ claims }: BrowserSession, { identity }: UserTokens): void {
  if (identity === undefined || identity["sub"] === claims["sub"]) return;
  throw new PlatformError("forbidden", "The identity provider renewed another user's session.");
}

/**
 * The claims of tokens. A refresh replaces those of `session` by token: what a new one lacks was taken from the user, and
 * claims of a token that the provider does not renew remain.
 */
export function readClaims(
  { identity, access }: UserTokens,
  more: readonly string[],
  session: BrowserSession | undefined,
): Required<Pick<BrowserSession, "claims" | "accessClaims">> {
  const known = Object.entries(session?.claims ?? {});
  const ofAccess = new Set(session?.accessClaims);
  const { sid } = session?.claims ?? {};
  // Not all providers repeat the ID of their session, which a logout token may name.
  const fromIdentity = identity
    ? { ...(sid === undefined ? {} : { sid }), ...pickClaims(identity, more) }
    : Object.fromEntries(known.filter(([name]) => !ofAccess.has(name)));
  const fromAccess = access
    ? pickClaims(access, more)
    : Object.fromEntries(known.filter(([name]) => ofAccess.has(name)));
  return {
    claims: { ...fromAccess, ...fromIdentity },
    accessClaims: Object.keys(fromAccess).filter((name) => !(name in fromIdentity)),
  };
}

function pickClaims(
  claims: Readonly<Record<string, unknown>>,
  more: readonly string[],
): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of [...CLAIMS, ...more]) {
    if (claims[name] !== undefined) picked[name] = claims[name];
  }
  return picked;
}
