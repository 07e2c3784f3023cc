// The standard guard of an API: bearer tokens if any are configured, otherwise only programs on this machine.
import { createRetryLaterError, createUnauthorizedError, PlatformError } from "../errors/index.ts";
import type { Caller } from "../identity/caller.ts";
import type { TokenVerifier, Verdict } from "../identity/verifier.ts";
import type { Guard } from "./api-options.ts";
import { checkLoopback } from "./loopback.ts";
import type { GuardedRequest, HeaderReader } from "./route.ts";

const BEARER = /^bearer +([A-Za-z0-9._~+/=-]+) *$/i;

/**
 * Creates a guard for `Authorization: Bearer` (RFC 6750). Without a verifier, that is, if no credentials are
 * configured, programs on this machine are the operator and all others receive 403.
 */
export function createBearerGuard(verifier: TokenVerifier | undefined): Guard {
  if (verifier === undefined) return admitLoopback;
  return (request) => {
    if (!request.headers.has("authorization"))
      throw createUnauthorizedError("A bearer token is required.");
    const token = readBearer(request.headers);
    if (token === undefined)
      throw invalidToken("The Authorization header contains no bearer token.");
    const verdict = verifier.verify(token);
    return verdict instanceof Promise ? verdict.then(toCaller) : toCaller(verdict);
  };
}

/** The bearer token of a request; undefined if it has none. */
export function readBearer(headers: HeaderReader): string | undefined {
  return BEARER.exec(headers.get("authorization") ?? "")?.[1];
}

function admitLoopback(request: GuardedRequest): Caller {
  const verdict = checkLoopback({
    peer: request.peer,
    getHeader: (name) => request.headers.get(name),
  });
  if (verdict.allowed) return { kind: "operator" };
  throw new PlatformError(
    "forbidden",
    `No credentials are configured, so only programs on this machine have access: ${verdict.reason}.`,
  );
}

function toCaller(verdict: Verdict): Caller {
  switch (verdict.kind) {
    case "operator":
    case "user":
      return verdict;
    case "refused":
      if (verdict.code === "keys_unavailable") {
        throw createRetryLaterError("unavailable", verdict.detail, 5);
      }
      throw invalidToken(verdict.detail, verdict.reason);
    default:
      return verdict satisfies never;
  }
}

function invalidToken(detail: string, cause?: string): PlatformError {
  return createUnauthorizedError(
    detail,
    `Bearer error="invalid_token", error_description="${detail}"`,
    cause,
  );
}
