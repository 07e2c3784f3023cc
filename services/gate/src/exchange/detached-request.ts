// A request that continues without its client: it begins in the middle of its route, with the state that the steps
// before have given the client's request.
import type {
  CompiledRoute,
  DetachedRequest,
  GateExchange,
  RequestState,
  Step,
} from "./exchange.ts";

/** Copies the state of a request that routing and the steps so far have set. */
export function detachRequest(
  exchange: GateExchange,
  route: CompiledRoute,
  step: Step,
): DetachedRequest {
  const { forwardPath, forwardQuery, userData } = exchange;
  const { caller, apiKey, identityLines, authLines, cookies } = userData;
  const { holdsOperatorToken, preferredTarget, path, method } = userData;
  const { clientAddress, proto, host, origin, lines } = userData.forwarding;
  const state: Partial<RequestState> = {
    route,
    caller,
    apiKey,
    identityLines,
    authLines,
    cookies,
    holdsOperatorToken,
    preferredTarget,
    path,
    method,
    startedAtEpochMs: Date.now(),
  };
  return {
    route,
    step,
    hasBegun: false,
    restore(detached) {
      Object.assign(detached.userData, state);
      Object.assign(detached.userData.forwarding, {
        clientAddress,
        proto,
        host,
        origin,
        lines,
      });
      detached.forwardPath = forwardPath;
      detached.forwardQuery = forwardQuery;
    },
  };
}
