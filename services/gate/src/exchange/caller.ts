// Callers of the gateway, as the identity step and the guard of internal routes establish them.
import type { Claims } from "@platform/kernel/identity";
import type { EndableSession } from "../shared-state/index.ts";

/** Claims of a verified token that the gateway uses. */
export type TokenClaims = Pick<Claims, "scope" | "roles"> &
  Partial<Pick<Claims, "sub" | "tenant" | "username" | "iat" | "policy_version" | "all">> &
  Pick<Claims, "iss" | "jti" | "sid" | "kid">;

/** The caller of a proxied or an internal route. `local`: a program on this machine, on internal routes only. */
export type GateCaller =
  | { kind: "anonymous" }
  | { kind: "operator" }
  /** `session`: of a browser, on routes with sign-in. */
  | {
      kind: "user";
      claims: TokenClaims;
      session?: EndableSession;
      /** True on internal routes if the user may only read. */
      isReader?: true;
    }
  | { kind: "local" };

/** The verified user of a connection's last request, and the conditions under which the verdict holds. */
export interface KnownCaller {
  readonly caller: GateCaller & { kind: "user" };
  /** The Authorization field. */
  readonly credentials: Buffer;
  /** The step that verified it, and the identity settings then. */
  readonly step: object;
  readonly identity: object;
  /** Revision of API keys, revocations and policy. */
  readonly revision: number;
  /** Second since 1970: expiry and keys are checked again with the next one. */
  readonly second: number;
}
