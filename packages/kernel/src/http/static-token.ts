// Static tokens for a single purpose, such as scraping metrics.
import { hash, timingSafeEqual } from "node:crypto";
import { createUnauthorizedError, PlatformError } from "../errors/index.ts";
import { readBearer } from "./guard.ts";
import type { GuardedRequest } from "./route.ts";

/** Returns a function that compares tokens with an expected one in constant time. */
function createTokenMatcher(expected: string): (token: string) => boolean {
  const digest = hash("sha256", expected, "buffer");
  return (token) => timingSafeEqual(hash("sha256", token, "buffer"), digest);
}

/**
 * Returns a check that throws unless a request has the token: 401, or 403 if no token is configured. `key` is the
 * configuration key.
 */
export function createTokenCheck(
  expected: string | undefined,
  key: string,
): (request: Pick<GuardedRequest, "headers">) => void {
  if (expected === undefined) {
    return () => {
      throw new PlatformError("forbidden", `This is disabled: no ${key} is configured.`);
    };
  }
  const matches = createTokenMatcher(expected);
  return ({ headers }) => {
    const token = readBearer(headers);
    if (token !== undefined && matches(token)) return;
    throw createUnauthorizedError(`The ${key} is required as a bearer token.`);
  };
}
