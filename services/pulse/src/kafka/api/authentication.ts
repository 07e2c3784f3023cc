// SaslHandshake and SaslAuthenticate.
import { ERROR_CODES } from "../protocol/error-codes.ts";
import { saslAuthenticate, saslHandshake } from "../protocol/messages/index.ts";
import {
  SASL_MECHANISMS,
  type CredentialStore,
  type SaslExchange,
  type SaslMechanism,
} from "../sasl/mechanism.ts";
import { beginPlain } from "../sasl/plain.ts";
import { beginScram } from "../sasl/scram.ts";
import { allow } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import type { Principal } from "../../user/principal.ts";
import { admitUser, TOO_MANY_CONNECTIONS, type Authentication } from "../server/session.ts";

const NO_BYTES = Buffer.alloc(0);

/** Creates the routes of authentication. `fakeSaltKey`: 32 secret bytes that stay the same over restarts. */
export function createAuthenticationRoutes(
  credentials: CredentialStore,
  fakeSaltKey: Buffer,
): Route[] {
  const begin = (mechanism: SaslMechanism): SaslExchange =>
    mechanism === "PLAIN"
      ? beginPlain(credentials)
      : beginScram(mechanism, credentials, fakeSaltKey);

  return [
    route(
      saslHandshake,
      allow("public", ({ mechanism }, { session, version }) => {
        if (!mayBegin(session.authentication)) {
          return { errorCode: ERROR_CODES.illegalSaslState, mechanisms: [] };
        }
        const known = SASL_MECHANISMS.find((name) => name === mechanism);
        if (known === undefined) {
          return { errorCode: ERROR_CODES.unsupportedSaslMechanism, mechanisms: SASL_MECHANISMS };
        }
        session.authentication = {
          state: "under way",
          exchange: begin(known),
          isBare: version === 0,
        };
        return { errorCode: ERROR_CODES.none, mechanisms: SASL_MECHANISMS };
      }),
    ),

    route(
      saslAuthenticate,
      allow("public", async ({ authBytes }, { session }) => {
        const { authentication } = session;
        if (authentication.state !== "under way") {
          const errorMessage = "SaslHandshake has to come first.";
          return { errorCode: ERROR_CODES.illegalSaslState, errorMessage, authBytes: NO_BYTES };
        }
        const step = await authentication.exchange.step(authBytes);
        const fail = (errorMessage: string) => {
          session.authentication = { state: "refused" };
          const errorCode = ERROR_CODES.saslAuthenticationFailed;
          return { errorCode, errorMessage, authBytes: NO_BYTES };
        };
        if (step.kind === "failed") return fail(step.message);
        if (step.kind === "done" && !admitUser(session, step.principal)) {
          return fail(TOO_MANY_CONNECTIONS);
        }
        return {
          errorCode: ERROR_CODES.none,
          errorMessage: null,
          authBytes: step.bytes,
          sessionLifetimeMs: step.kind === "done" ? lifetimeOf(step.principal) : 0,
        };
      }),
    ),
  ];
}

// KIP-368: a client whose token expires reauthenticates on the same connection.
function mayBegin(authentication: Authentication): boolean {
  if (authentication.state !== "done") return authentication.state === "demanded";
  return authentication.isAnonymous === true || authentication.principal.expiresAtMs !== undefined;
}

/** Remaining milliseconds; 0 for a principal that does not expire. */
function lifetimeOf({ expiresAtMs }: Principal): number {
  return expiresAtMs === undefined ? 0 : Math.max(1, expiresAtMs - Date.now());
}
