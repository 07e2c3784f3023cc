// UserInfo (OpenID Connect Core section 5.3) for JWT access tokens, bearer or DPoP-bound.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@platform/kernel/time";
import type { Accounts } from "../user/account.ts";
import type { AccessTokenClaims, AccessTokenVerifier } from "./access-token.ts";
import { checkProof } from "./dpop-proof.ts";
import { OAuthError, sendJson } from "./endpoint.ts";
import type { ItemStore } from "./item-store.ts";
import { describeAccount } from "./provider.ts";
import { ownRoutes } from "./routes.ts";

/** What the endpoint works with. */
export interface UserinfoParts {
  verifier: AccessTokenVerifier;
  accounts: Accounts;
  items: ItemStore;
  clock: Clock;
  issuer: string;
}

const credentialsPattern = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*) *$/i;
const claimsOfScope: Readonly<Record<string, readonly string[]>> = {
  openid: ["sub"],
  profile: ["name", "picture", "preferred_username"],
  email: ["email", "email_verified"],
};

/** Answers with the claims that the token's scope permits. */
export async function serveUserinfo(
  parts: UserinfoParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const claims = await authenticate(parts, request);
  const scopes = claims.scope?.split(" ") ?? [];
  if (!scopes.includes("openid")) {
    throw new OAuthError(
      403,
      "insufficient_scope",
      "the access token lacks the scope openid",
      'Bearer error="insufficient_scope", scope="openid"',
    );
  }
  const account = await parts.accounts.find(claims.sub);
  if (account === undefined || account.disabled) throw refuse("Bearer");
  const known = describeAccount(account);
  const names = new Set(scopes.flatMap((scope) => claimsOfScope[scope] ?? []));
  sendJson(
    response,
    200,
    Object.fromEntries(Object.entries(known).filter(([name]) => names.has(name))),
  );
}

async function authenticate(
  parts: UserinfoParts,
  request: IncomingMessage,
): Promise<AccessTokenClaims> {
  const given = credentialsPattern.exec(request.headers.authorization ?? "");
  if (given === null) {
    throw new OAuthError(401, "invalid_token", "an access token is required", "Bearer");
  }
  const scheme = given[1]!.toLowerCase() === "dpop" ? "DPoP" : "Bearer";
  const token = given[2]!;
  const verified = await parts.verifier.verify(token);
  if (verified === undefined) throw refuse(scheme);
  const jkt = verified.claims.cnf?.jkt;
  // A bound token is worth nothing without its key, and a free one is not to be passed off as bound.
  if ((jkt === undefined) !== (scheme === "Bearer")) throw refuse(scheme);
  if (jkt !== undefined) await requireProof(parts, request, token, jkt);
  return verified.claims;
}

async function requireProof(
  { clock, issuer, items }: UserinfoParts,
  request: IncomingMessage,
  accessToken: string,
  jkt: string,
): Promise<void> {
  const proof = request.headers["dpop"];
  const target = {
    method: request.method ?? "GET",
    url: `${issuer}${ownRoutes.userinfo}`,
    accessToken,
    jkt,
  };
  const accepted = typeof proof === "string" ? checkProof(proof, target, clock) : undefined;
  if (
    accepted === undefined ||
    !(await items.acceptOnce(`dpop ${jkt} ${accepted.jti}`, accepted.expiresAt))
  ) {
    throw new OAuthError(
      401,
      "invalid_dpop_proof",
      "the DPoP proof is missing or not valid",
      'DPoP error="invalid_dpop_proof", algs="ES256 EdDSA"',
    );
  }
}

function refuse(scheme: string): OAuthError {
  return new OAuthError(
    401,
    "invalid_token",
    "the access token is not valid",
    `${scheme} error="invalid_token"`,
  );
}
