// The authenticated user of a connection of a wire protocol.
import type { RevocableToken } from "@platform/kernel/identity";
import { ALL_RIGHTS, type Rights } from "../topic/rights.ts";

/** The authenticated user of a connection and its tenant. */
export interface Principal {
  /** For logs and administration; not a secret. */
  name: string;
  tenant: string;
  rights: Rights;
  /** Expiry of the client's token in epoch milliseconds; absent if it does not expire. */
  expiresAtMs?: number;
  /** The client's token, if it has one: the connection ends when it is revoked. */
  token?: RevocableToken;
}

/**
 * The user that connections and sessions belong to: names of users and subjects of tokens are apart. The name that comes
 * with a token is chosen by the client.
 */
export function ownerOf({ name, token }: Pick<Principal, "name" | "token">): string {
  return token?.sub === undefined ? `user:${name}` : `sub:${token.sub}`;
}

/** Verifies the password of a user, which may be a token; undefined if it is wrong. */
export interface PasswordVerifier {
  verifyPassword(user: string, password: string): Promise<Principal | undefined>;
}

/** Clients on this machine without credentials: the operator. */
export const ANONYMOUS: Principal = { name: "anonymous", tenant: "", rights: ALL_RIGHTS };
