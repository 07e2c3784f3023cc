// The web console of identity: sign-in with a password, or with the session token of a sign-in with a second factor.
import type { OperationOptions } from "@platform/chassis";
import type { AuthConfig } from "../config.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { SignIn } from "../sign-in/sign-in.ts";
import type { Identification } from "./principal.ts";
import { requireSignedIn } from "./signed-in.ts";

/** Describes the console. */
export function describeConsole(options: {
  config: AuthConfig;
  identification: Identification;
  signIn: SignIn;
  sessions: Sessions;
  credentials: Credentials;
}): NonNullable<OperationOptions["console"]> {
  const { config, identification, signIn, sessions, credentials } = options;
  return {
    features: ["users", "groups", "roles", "clients", "sessions", "audit", "keys", "invitations"],
    credentials: "password",
    check: async (login, request) => {
      const { username, password } =
        "username" in login ? login : { username: login.access_key, password: login.secret_key };
      const outcome = await signIn.signIn(
        { kind: "password", username, password, deviceMark: undefined },
        identification.readOrigin(request),
        { mint: false },
      );
      const { sessionToken: token } = requireSignedIn(outcome);
      const headers = new Headers({ authorization: `Bearer ${token}` });
      const caller = await identification.guard({ ...request, headers });
      return {
        caller,
        credential: { kind: "bearer", token },
        permissions: identification.listPermissions(caller),
      };
    },
    end: async (credential) => {
      if (credential.kind !== "bearer") return;
      const session = await sessions.peek(credential.token);
      if (session !== undefined) await credentials.endSession(session.id);
    },
    renew: (caller) => identification.takeRenewedToken(caller),
    publicUrl: config.console_url ?? config.public_url,
  };
}
