// UserInfo (OpenID Connect Core section 5.3) for JWT access tokens, bearer or DPoP-bound.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "@platform/kernel/time";
import type { Provider } from "oidc-provider";
import type { Users } from "../../user/users.ts";
import { keepToClient, openToOrigin } from "../client/cors.ts";
import { CORE_ROUTES } from "../core/routes.ts";
import type { AccessTokenClaims, AccessTokenVerifier } from "../token/access-token.ts";
import type { Audiences } from "../token/audience.ts";
import { checkProof } from "../token/dpop-proof.ts";
import type { ItemStore } from "../token/item-store.ts";
import type { RevocationList } from "../token/revocation-list.ts";
import { CLAIMS_OF_SCOPE, describeAccount } from "../token/user-claims.ts";
import { isForm, OAuthError, readForm, sendJson } from "./endpoint.ts";

/** Options of the endpoint. */
export interface UserinfoOptions {
  verifier: AccessTokenVerifier;
  users: Users;
  items: ItemStore;
  revocations: RevocationList;
  clock: Clock;
  audiences: Audiences;
  getProvider: () => Provider;
}

const DPOP_ALGORITHMS = "ES256 Ed25519 EdDSA";
const CREDENTIALS_PATTERN = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*) *$/i;

/** Responds with the claims of the token's scope and those that the authorization request named. */
export async function serveUserinfo(
  options: UserinfoOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  openToOrigin(request, response);
  const claims = await authenticate(options, request);
  await keepToClient(options.getProvider(), claims.client_id, request, response);
  const scopes = claims.scope?.split(" ") ?? [];
  if (!scopes.includes("openid")) {
    throw new OAuthError(
      403,
      "insufficient_scope",
      "the access token lacks the scope openid",
      `${schemeOf(claims)} realm="${options.audiences.issuer}", error="insufficient_scope", scope="openid"`,
    );
  }
  const account = await options.users.find(claims.sub);
  if (account === undefined || account.disabled) throw refuse(options, schemeOf(claims));
  const known = describeAccount(account);
  const names = new Set([
    ...scopes.flatMap((scope) => CLAIMS_OF_SCOPE[scope] ?? []),
    ...(await options.revocations.findClaimsOf(claims.jti)),
  ]);
  sendJson(
    response,
    200,
    Object.fromEntries(Object.entries(known).filter(([name]) => names.has(name))),
  );
}

async function authenticate(
  options: UserinfoOptions,
  request: IncomingMessage,
): Promise<AccessTokenClaims> {
  const { scheme, token } = await readCredentials(options, request);
  const verified = await options.verifier.verify(token);
  // Tokens for another resource do not give it access to the user's claims.
  const { issuer, platform } = options.audiences;
  if (verified === undefined || ![issuer, platform].includes(verified.claims.aud))
    throw refuse(options, scheme);
  const jkt = verified.claims.cnf?.jkt;
  // A bound token requires proof of its key; an unbound one must not be presented as bound.
  if ((jkt === undefined) !== (scheme === "Bearer")) throw refuse(options, scheme);
  if (jkt !== undefined) await requireProof(options, request, token, jkt);
  return verified.claims;
}

// RFC 6750 section 2: in the header or in a form, but not in both.
async function readCredentials(
  { audiences: { issuer } }: UserinfoOptions,
  request: IncomingMessage,
): Promise<{ scheme: Scheme; token: string }> {
  const { authorization } = request.headers;
  const sent =
    request.method === "POST" && isForm(request)
      ? (await readForm(request)).get("access_token")
      : undefined;
  if (sent !== undefined) {
    if (authorization === undefined) return { scheme: "Bearer", token: sent };
    const text = "the access token must be sent in one place only";
    throw new OAuthError(
      400,
      "invalid_request",
      text,
      `Bearer realm="${issuer}", error="invalid_request"`,
    );
  }
  const given = CREDENTIALS_PATTERN.exec(authorization ?? "");
  if (given === null) {
    // Section 3.1: a request without credentials gets the challenges without an error code.
    const challenge = `Bearer realm="${issuer}", DPoP realm="${issuer}", algs="${DPOP_ALGORITHMS}"`;
    throw new OAuthError(401, "invalid_token", "an access token is required", challenge);
  }
  return { scheme: given[1]!.toLowerCase() === "dpop" ? "DPoP" : "Bearer", token: given[2]! };
}

async function requireProof(
  { clock, audiences: { issuer }, items }: UserinfoOptions,
  request: IncomingMessage,
  accessToken: string,
  jkt: string,
): Promise<void> {
  const proof = request.headers["dpop"];
  const target = {
    method: request.method ?? "GET",
    url: `${issuer}${CORE_ROUTES.userinfo}`,
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
      "the DPoP proof is missing or invalid",
      `DPoP realm="${issuer}", error="invalid_dpop_proof", algs="${DPOP_ALGORITHMS}"`,
    );
  }
}

type Scheme = "Bearer" | "DPoP";

function schemeOf({ cnf }: AccessTokenClaims): Scheme {
  return cnf?.jkt === undefined ? "Bearer" : "DPoP";
}

function refuse({ audiences: { issuer } }: UserinfoOptions, scheme: Scheme): OAuthError {
  const algs = scheme === "DPoP" ? `, algs="${DPOP_ALGORITHMS}"` : "";
  return new OAuthError(
    401,
    "invalid_token",
    "the access token is not valid",
    `${scheme} realm="${issuer}", error="invalid_token"${algs}`,
  );
}
