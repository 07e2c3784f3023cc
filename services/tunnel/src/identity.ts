// Callers of the relay: static tokens, JWTs, or programs on this machine; their subjects and rights.
import { createHash } from "node:crypto";
import { createBearerGuard } from "@platform/kernel/http";
import { hasScope, requireScope, type Caller, type TokenVerifier } from "@platform/kernel/identity";
import type { LiveSecret } from "@platform/kernel/secrets";
import type { RelayConfig } from "./config.ts";

/** Subject of the operator. */
export const OPERATOR = "operator";
/** Scope of users that manage the tunnels of all subjects. */
export const ADMIN_SCOPE = "tunnel:admin";
const SUBJECT_CHARACTERS_MAX = 255;

interface StaticToken {
  readonly subject: string;
  readonly secret: LiveSecret;
}

/** The guard of API and connections. */
export type RelayGuard = ReturnType<typeof createBearerGuard>;

/**
 * Creates the guard. Without any token or key, only programs on this machine are admitted, as the operator. Throws if
 * `auth_token` is malformed. `follow` follows replacements of a static token.
 */
export function createRelayGuard(
  config: RelayConfig,
  verifier: TokenVerifier | undefined,
  follow: (token: string) => LiveSecret,
): RelayGuard {
  const tokens = config.auth_token === undefined ? [] : readStaticTokens(config.auth_token, follow);
  if (tokens.length === 0) return createBearerGuard(verifier);
  return createBearerGuard(new NamedTokens(tokens, verifier, config.open_scope));
}

/** Throws unless the caller may open and reserve tunnels. */
export function requireOpening(
  caller: Caller,
  { open_scope }: Pick<RelayConfig, "open_scope">,
): void {
  if (open_scope !== undefined && !isOperator(caller)) requireScope(caller, open_scope);
}

/** The subject that owns the caller's tunnels. */
export function subjectOf(caller: Caller): string {
  switch (caller.kind) {
    case "operator":
      return OPERATOR;
    case "user":
      return (caller.claims.sub ?? "").slice(0, SUBJECT_CHARACTERS_MAX);
    case "anonymous":
      return "";
    default:
      return caller satisfies never;
  }
}

/** True if the caller manages the tunnels of all subjects. */
export function isOperator(caller: Caller): boolean {
  return hasScope(caller, ADMIN_SCOPE);
}

/** Time in ms since 1970 at which the caller's token expires; `Infinity` for static tokens. */
export function expiryOf(caller: Caller): number {
  return caller.kind === "user" ? caller.claims.exp * 1_000 : Infinity;
}

/** Static tokens with names, then JWTs. */
class NamedTokens implements TokenVerifier {
  readonly #tokens: readonly StaticToken[];
  readonly #next: TokenVerifier | undefined;
  readonly #scope: readonly string[];

  constructor(
    tokens: readonly StaticToken[],
    next: TokenVerifier | undefined,
    scope: string | undefined,
  ) {
    this.#tokens = tokens;
    this.#next = next;
    this.#scope = scope === undefined ? [] : [scope];
  }

  verify(token: string): ReturnType<TokenVerifier["verify"]> {
    const digest = createHash("sha256").update(token).digest();
    let subject = "";
    // All are compared, so that the time does not depend on which one matches.
    for (const known of this.#tokens) {
      if (known.secret.acceptsDigest(digest)) ({ subject } = known);
    }
    if (subject === OPERATOR) return { kind: "operator" };
    if (subject !== "") {
      const claims = { sub: subject, exp: Infinity, scope: this.#scope, roles: [], all: {} };
      return { kind: "user", claims };
    }
    return (
      this.#next?.verify(token) ?? {
        kind: "refused",
        code: "unknown_token",
        detail: "The token is not valid.",
        reason: "The token is not valid.",
      }
    );
  }
}

function readStaticTokens(text: string, follow: (token: string) => LiveSecret): StaticToken[] {
  return text.split(",").map((entry, index) => {
    const colon = entry.indexOf(":");
    const subject = colon === -1 ? OPERATOR : entry.slice(0, colon).trim();
    const token = entry.slice(colon + 1).trim();
    if (!/^[A-Za-z0-9_.@-]{1,64}$/.test(subject) || !/^[A-Za-z0-9._~+/=-]{8,4096}$/.test(token)) {
      throw new Error(
        `auth_token: entry ${index + 1} must be [name:]token; names have 1 to 64 of A-Z a-z 0-9 _ . @ -, tokens 8 to 4096 of A-Z a-z 0-9 . _ ~ + / = -`,
      );
    }
    return { subject, secret: follow(token) };
  });
}
