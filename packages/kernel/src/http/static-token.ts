// Static tokens for a single purpose, such as scraping metrics.
import { createUnauthorizedError, PlatformError } from "../errors/index.ts";
import { toLiveSecret, type Secret } from "../secrets/index.ts";
import { readBearer } from "./guard.ts";
import type { GuardedRequest } from "./route.ts";

/**
 * Returns a check that throws unless a request has the token: 401, or 403 if no token is configured. `key` is the
 * configuration key.
 */
export function createTokenCheck(
  expected: Secret | undefined,
  key: string,
): (request: Pick<GuardedRequest, "headers">) => void {
  if (expected === undefined) {
    return () => {
      throw new PlatformError("forbidden", `This is disabled: no ${key} is configured.`);
    };
  }
  const secret = toLiveSecret(expected);
  return ({ headers }) => {
    const token = readBearer(headers);
    if (token !== undefined && secret.accepts(token)) return;
    throw createUnauthorizedError(`The ${key} is required as a bearer token.`);
  };
}
