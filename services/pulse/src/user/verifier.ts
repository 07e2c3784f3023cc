// The verifier of tokens, as configured.
import type { TokenVerifier } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { PulseConfig } from "../config.ts";

type Credentials = Pick<
  PulseConfig,
  "token" | "jwt_secret" | "jwks_url" | "users_file" | "stomp_user" | "stomp_password"
>;

/** True if credentials of any kind are configured: then nobody has access without, in any protocol. */
export function hasCredentials(config: Credentials): boolean {
  const { token, jwt_secret, jwks_url, users_file, stomp_user, stomp_password } = config;
  const kinds = [token, jwt_secret, jwks_url, users_file, stomp_user, stomp_password];
  return kinds.some((kind) => kind !== undefined);
}

/**
 * Returns the verifier of tokens; undefined if no credentials are configured, which is logged. If only users with passwords are, it
 * refuses every token: HTTP has no passwords.
 */
export function completeVerifier(
  config: PulseConfig,
  verifier: TokenVerifier | undefined,
  log: Logger,
): TokenVerifier | undefined {
  if (verifier !== undefined) return verifier;
  if (hasCredentials(config)) {
    log.warn("only users with passwords are configured: nobody has access to the HTTP API");
    return REFUSE_ALL;
  }
  log.warn("no credentials are configured: only programs on this machine are answered");
  return undefined;
}

const REFUSE_ALL: TokenVerifier = {
  verify: () => ({
    kind: "refused",
    code: "unknown_token",
    detail: "The token is not valid.",
    reason: "No kind of token is configured.",
  }),
};
