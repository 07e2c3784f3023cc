// Bearer tokens with a bound on failed attempts: of the API, of connections and of protected tunnels.
import { createRetryLaterError, toPlatformError } from "@platform/kernel/errors";
import { readBearer, type GuardedRequest } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { findClientAddress, type AddressSet } from "@platform/kernel/network";
import type { RelayGuard } from "../identity.ts";
import type { Throttles } from "./throttle.ts";

/** 128 random bits in hexadecimal digits. Shorter tokens of the configuration may be words. */
const TOKEN_CHARACTERS_MIN = 32;

/** Options of {@link admitBearer}. */
export interface BearerOptions {
  guard: RelayGuard;
  throttles: Throttles;
}

/**
 * Returns the caller of a request from `address`. Failures count for the address; with too many, further invalid tokens
 * are 429. Tokens that could be guessed are refused without being verified. Requests without a token guess nothing.
 */
export async function admitBearer(
  { guard, throttles }: BearerOptions,
  request: GuardedRequest,
  address: string,
): Promise<Caller> {
  if (!request.headers.has("authorization")) return guard(request);
  const token = readBearer(request.headers) ?? "";
  const isGuessable = token.length < TOKEN_CHARACTERS_MIN;
  const throttle = isGuessable ? throttles.guesses : throttles.tokens;
  if (isGuessable) expectAttempt(throttle.waitSeconds(address));
  try {
    return await guard(request);
  } catch (error) {
    if (toPlatformError(error).status === 401) {
      expectAttempt(throttle.waitSeconds(address));
      throttle.noteFailure(address);
    }
    throw error;
  }
}

/** Wraps the guard of the API. */
export function createThrottledGuard(options: BearerOptions, trusted: AddressSet): RelayGuard {
  return (request) => {
    if (request.peer.kind !== "tcp") return options.guard(request);
    const chain = request.headers.get("x-forwarded-for") ?? "";
    const forwarded = request.headers.get("forwarded") ?? "";
    const address = findClientAddress(request.peer.address, chain, trusted, forwarded);
    return admitBearer(options, request, address);
  };
}

function expectAttempt(waitSeconds: number): void {
  if (waitSeconds > 0)
    throw createRetryLaterError("too_many_requests", "Too many failed attempts.", waitSeconds);
}
