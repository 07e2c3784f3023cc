// Errors that the adapter throws for the core.
import { errors } from "oidc-provider";

const REPLAY_DETAIL = "replay detected";

/** A single-use item was already used: `invalid_grant`, or `invalid_request_uri` for a pushed request. */
export function createLostRaceError(model: string): Error {
  if (model === "PushedAuthorizationRequest") {
    return new errors.InvalidRequestUri("request_uri was already used");
  }
  return new errors.InvalidGrant(`${model} was already used`);
}

/** A proof or assertion with a known `jti`. */
export function createReplayError(): Error {
  return new errors.InvalidGrant(REPLAY_DETAIL);
}

/** True for errors of `createReplayError`. */
export function isReplayError(error: unknown): boolean {
  return error instanceof errors.InvalidGrant && error.error_detail === REPLAY_DETAIL;
}

/** The grant was revoked in the meantime. */
export function createGoneError(): Error {
  return new errors.InvalidGrant("the grant was revoked");
}
