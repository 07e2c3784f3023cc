// Errors that the core's adapter throws in the core's own terms.
import { errors } from "oidc-provider";

const REPLAY_DETAIL = "replay detected";

/** A single-use item had been used when it came to it: `invalid_grant`, or `invalid_request_uri` of a pushed request. */
export function createLostRaceError(model: string): Error {
  if (model === "PushedAuthorizationRequest") {
    return new errors.InvalidRequestUri("request_uri was already used");
  }
  return new errors.InvalidGrant(`${model} was already used`);
}

/** A proof or assertion whose `jti` was seen before. */
export function createReplayError(): Error {
  return new errors.InvalidGrant(REPLAY_DETAIL);
}

/** Whether an error is that of `createReplayError`. */
export function isReplayError(error: unknown): boolean {
  return error instanceof errors.InvalidGrant && error.error_detail === REPLAY_DETAIL;
}

/** A grant that has been revoked meanwhile. */
export function createGoneError(): Error {
  return new errors.InvalidGrant("the grant was revoked");
}
