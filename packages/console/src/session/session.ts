// A console session: who signed in, and the credentials with which services are called.
import type { ServiceId, SignInMethod } from "../contract.ts";
import { EVERY_SCOPE, type Caller } from "@platform/kernel/identity";

/** Tokens of identity. */
export interface IdentityTokens {
  accessToken: string;
  refreshToken: string | undefined;
  /** Names the session when the browser is sent to identity to sign out. */
  idToken: string | undefined;
  /** Epoch ms at which the access token should be renewed. */
  renewAtMs: number;
}

/** Credential for one service. */
export type Credential =
  /** A bearer token. */
  | { kind: "bearer"; token: string }
  /** The Cookie header of a session of the service's own console. */
  | { kind: "cookie"; cookie: string }
  /** Credentials that the service has checked itself. */
  | { kind: "caller"; caller: Caller };

/** Result of a sign-in. */
export interface Grant {
  method: Exclude<SignInMethod, "loopback">;
  user: { id: string; name: string };
  isAdmin: boolean;
  permissions: readonly string[];
  roles: readonly string[];
  /** By service; those of identity are in `tokens`. */
  credentials: Map<ServiceId, Credential>;
  /** Tokens of identity, which all services accept. */
  tokens?: IdentityTokens;
  /** Subject and session at identity, which back-channel logout names. */
  subject?: { sub: string; sid: string | undefined };
  /** Time of the sign-in at identity, epoch ms; default: now. */
  authenticatedMs?: number;
}

/** Subject and session of identity. A logout token without `sid` names all sessions of the subject. */
export interface EndedSessions {
  sub: string | undefined;
  sid: string | undefined;
}

/** A live session. Stores return it as it was when it was read; they change it by `update`. */
export interface Session extends Grant {
  /** Hash of the token, which only the browser has. */
  id: string;
  /** Begin of the session. */
  signedInMs: number;
  /** Time at which the user last proved who they are. */
  authenticatedMs: number;
  lastUsedMs: number;
  /** End of the session, however much it is used. */
  endsMs: number;
}

/** True if a logout token ends the session of a subject. */
export function isEnded(subject: Grant["subject"], { sub, sid }: EndedSessions): boolean {
  if (subject === undefined || (sub !== undefined && subject.sub !== sub)) return false;
  return sid === undefined || (subject.sid === undefined ? sub !== undefined : subject.sid === sid);
}

/** Describes the permissions of a caller. */
export function describeCaller(
  caller: Caller,
): Pick<Grant, "user" | "isAdmin" | "permissions" | "roles"> {
  switch (caller.kind) {
    case "operator":
      return { user: OPERATOR, isAdmin: true, permissions: [], roles: [] };
    case "user": {
      const { sub = "", username = sub, scope, roles } = caller.claims;
      const isAdmin = scope.includes(EVERY_SCOPE);
      return { user: { id: sub, name: username }, isAdmin, permissions: scope, roles };
    }
    case "anonymous":
      return { user: { id: "", name: "anonymous" }, isAdmin: false, permissions: [], roles: [] };
    default:
      return caller satisfies never;
  }
}

const OPERATOR = { id: "operator", name: "operator" } as const;
