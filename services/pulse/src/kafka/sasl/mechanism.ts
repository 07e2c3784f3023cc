// What the SASL mechanisms have in common.
import type { Principal } from "../principal.ts";

/** The outcome of one message of a mechanism. */
export type SaslStep =
  | { kind: "continue"; bytes: Buffer }
  | { kind: "done"; bytes: Buffer; principal: Principal }
  /** `message` may be told to the client: it does not say whether the user exists. */
  | { kind: "failed"; message: string };

/** One authentication, message by message. */
export interface SaslExchange {
  step(bytes: Buffer): Promise<SaslStep>;
}

/** The mechanisms that are offered, the best first. */
export const SASL_MECHANISMS = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] as const;
/** A mechanism's name. */
export type SaslMechanism = (typeof SASL_MECHANISMS)[number];

/** What SCRAM needs to know of a user (RFC 5802, section 3). */
export interface ScramCredential {
  salt: Buffer;
  iterations: number;
  storedKey: Buffer;
  serverKey: Buffer;
}

/** The users that may come in. */
export interface CredentialStore {
  /** The principal if user and password are right. Takes as long for users that do not exist. */
  verifyPassword(user: string, password: string): Promise<Principal | undefined>;
  /** What SCRAM needs of a user, and who it is; undefined if there is none or it has no such credential. */
  findScram(
    user: string,
    mechanism: "SCRAM-SHA-256" | "SCRAM-SHA-512",
  ): { credential: ScramCredential; principal: Principal } | undefined;
  /** Whether a user of that name has a password. Not told to clients. */
  hasUser(user: string): boolean;
}

/** What a client is told when it does not get in. */
export const AUTHENTICATION_FAILED = "Authentication failed: user or password is wrong.";
