// SASL PLAIN (RFC 4616): user and password in one message.
import {
  AUTHENTICATION_FAILED,
  type CredentialStore,
  type SaslExchange,
  type SaslStep,
} from "./mechanism.ts";

const MESSAGE_BYTES_MAX = 2048;

/** Authentication by PLAIN. An authorization identity other than the user is rejected. */
export function beginPlain(credentials: CredentialStore): SaslExchange {
  return {
    async step(bytes): Promise<SaslStep> {
      const parts = bytes.length > MESSAGE_BYTES_MAX ? [] : bytes.toString("utf8").split("\0");
      const [identity, user, password] = parts;
      if (parts.length !== 3 || user === "" || password === "") {
        return {
          kind: "failed",
          message: "Authentication failed: the PLAIN message is malformed.",
        };
      }
      if (identity !== "" && identity !== user) {
        return {
          kind: "failed",
          message: "Authentication failed: acting as another is not allowed.",
        };
      }
      const principal = await credentials.verifyPassword(user!, password!);
      if (principal === undefined) return { kind: "failed", message: AUTHENTICATION_FAILED };
      return { kind: "done", bytes: Buffer.alloc(0), principal };
    },
  };
}
