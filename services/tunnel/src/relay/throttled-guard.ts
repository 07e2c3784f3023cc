// The guard of the API with a bound on failed attempts, as for connections and protected tunnels.
import { createRetryLaterError, toPlatformError } from "@platform/kernel/errors";
import { findClientAddress, type AddressSet } from "@platform/kernel/network";
import type { RelayGuard } from "../identity.ts";
import type { Throttle } from "./throttle.ts";

/** Wraps a guard: addresses that have sent too many wrong tokens receive 429 for the rest of their minute. */
export function createThrottledGuard(
  guard: RelayGuard,
  throttle: Throttle,
  trusted: AddressSet,
): RelayGuard {
  return async (request) => {
    // Requests without a token are refused, but guess nothing.
    if (request.peer.kind !== "tcp" || !request.headers.has("authorization")) return guard(request);
    const chain = request.headers.get("x-forwarded-for") ?? "";
    const forwarded = request.headers.get("forwarded") ?? "";
    const address = findClientAddress(request.peer.address, chain, trusted, forwarded);
    const waitSeconds = throttle.waitSeconds(address);
    if (waitSeconds > 0) {
      throw createRetryLaterError("too_many_requests", "Too many failed attempts.", waitSeconds);
    }
    try {
      return await guard(request);
    } catch (error) {
      if (toPlatformError(error).status === 401) throttle.noteFailure(address);
      throw error;
    }
  };
}
