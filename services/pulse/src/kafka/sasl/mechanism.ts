// Types shared by the SASL mechanisms.
import type { Principal } from "../../user/principal.ts";

/** Result of one message of a mechanism. */
export type SaslStep =
  | { kind: "continue"; bytes: Buffer }
  | { kind: "done"; bytes: Buffer; principal: Principal }
  /** `message` is safe for the client: it does not reveal whether the user exists. */
  | { kind: "failed"; message: string };

/** One authentication, message by message. */
export interface SaslExchange {
  step(bytes: Buffer): Promise<SaslStep>;
}

/** The supported mechanisms, strongest first. */
export const SASL_MECHANISMS = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] as const;
/** A mechanism's name. */
export type SaslMechanism = (typeof SASL_MECHANISMS)[number];

/** SCRAM credentials of a user (RFC 5802, section 3). */
export interface ScramCredential {
  salt: Buffer;
  iterations: number;
  storedKey: Buffer;
  serverKey: Buffer;
}

/** The users that may authenticate. */
export interface CredentialStore {
  /** The principal, if user and password are valid. Takes the same time for unknown users. */
  verifyPassword(user: string, password: string): Promise<Principal | undefined>;
  /** SCRAM credentials and principal of a user; `undefined` if there are none. */
  findScram(
    user: string,
    mechanism: "SCRAM-SHA-256" | "SCRAM-SHA-512",
  ): { credential: ScramCredential; principal: Principal } | undefined;
  /** True if a user of that name has a password. Not revealed to clients. */
  hasUser(user: string): boolean;
}

/** The error message of a failed authentication. */
export const AUTHENTICATION_FAILED = "Authentication failed: invalid user or password.";
