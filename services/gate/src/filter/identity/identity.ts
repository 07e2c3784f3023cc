// Identities of callers: the operator by the static token, users by a JWT.
import type { FieldBlock } from "@platform/http1";
import type { TokenClaims } from "../../exchange/caller.ts";
import type {
  ApiKeySpec,
  BearerAuth,
  GlobalSpec,
  JwtSpec,
  WorkloadAuth,
} from "../../shared-state/index.ts";
import { OperatorToken } from "./operator-token.ts";

/** Verifies a token, synchronously if its keys are known. Returns the claims; throws or rejects with a PlatformError. */
export type TokenVerifier = (token: string) => TokenClaims | Promise<TokenClaims>;

/** Provides verifiers; equal settings share one with its keys and its cache of verified tokens. */
export interface VerifierSource {
  forGlobal(spec: JwtSpec): TokenVerifier;
  /** `networks` are those that a confined route may reach. */
  forRoute(spec: BearerAuth | WorkloadAuth, networks: readonly string[] | undefined): TokenVerifier;
}

/** The active identity settings. */
export class Identity {
  /** True without a static token and JWT settings: routes are open, admin paths are for local programs only. */
  readonly isOpen: boolean;
  /** Verifies user tokens; undefined if JWTs are not configured. */
  readonly verifyUser: TokenVerifier | undefined;
  readonly #operatorTokens: readonly OperatorToken[];
  readonly #metricsTokens: readonly OperatorToken[];

  constructor(globals: GlobalSpec, verifiers: VerifierSource) {
    const { operatorTokens = [], metricsTokens = [], jwt } = globals;
    this.#operatorTokens = operatorTokens.map((spec) => new OperatorToken(spec));
    this.#metricsTokens = metricsTokens.map((spec) => new OperatorToken(spec));
    this.verifyUser = jwt === undefined ? undefined : verifiers.forGlobal(jwt);
    this.isOpen = operatorTokens.length === 0 && jwt === undefined;
  }

  /** True if the configuration has an operator token. */
  get hasOperator(): boolean {
    return this.#operatorTokens.length > 0;
  }

  /** True if this is the operator token; compares in constant time. */
  isOperator(token: string): boolean {
    return isOneOf(this.#operatorTokens, token);
  }

  /** True if this token gives access to `/metrics`; compares in constant time. */
  isMetricsToken(token: string): boolean {
    return isOneOf(this.#metricsTokens, token);
  }

  /**
   * True if Authorization contains the operator token in any form: then it must not be forwarded. One that has ended does not
   * become known to others either.
   */
  holdsOperatorToken(fields: FieldBlock): boolean {
    return this.#operatorTokens.some((token) => token.isInAuthorization(fields));
  }
}

function isOneOf(tokens: readonly OperatorToken[], given: string): boolean {
  const bytes = Buffer.from(given, "latin1");
  return tokens.some((token) => token.admits(bytes));
}

/** Holds the identity settings of the active configuration, which a change replaces. One per worker. */
export class ActiveIdentity {
  #current: Identity | undefined;

  /** Throws before the first configuration is active. */
  get current(): Identity {
    if (this.#current === undefined) throw new Error("no configuration is active");
    return this.#current;
  }

  set current(identity: Identity) {
    this.#current = identity;
  }
}

/** Identity fields for upstreams, formatted once for each claims object. One per worker. */
export class IdentityLines {
  readonly #lines = new WeakMap<TokenClaims, Buffer>();
  readonly #keyLines = new WeakMap<ApiKeySpec, Buffer>();

  /** The lines `X-User-Id`, `X-User-Roles` and `X-Tenant-Id` of the claims that are present, each with its CRLF. */
  format(claims: TokenClaims): Buffer {
    const known = this.#lines.get(claims);
    if (known !== undefined) return known;
    let text = "";
    if (claims.sub !== undefined) text += `X-User-Id: ${encodeValue(claims.sub)}\r\n`;
    if (claims.roles.length > 0)
      text += `X-User-Roles: ${claims.roles.map(encodeValue).join(",")}\r\n`;
    if (claims.tenant !== undefined) text += `X-Tenant-Id: ${encodeValue(claims.tenant)}\r\n`;
    const lines = Buffer.from(text, "latin1");
    this.#lines.set(claims, lines);
    return lines;
  }

  /** The line `X-Tenant-Id` of an API key. */
  formatKey(key: ApiKeySpec): Buffer {
    const known = this.#keyLines.get(key);
    if (known !== undefined) return known;
    const lines = Buffer.from(`X-Tenant-Id: ${encodeValue(key.tenant)}\r\n`, "latin1");
    this.#keyLines.set(key, lines);
    return lines;
  }
}

/** A claim can be any text, a field value cannot: all but visible ASCII, and `,` and `%`, is percent-encoded. */
export function encodeValue(value: string): string {
  return value.replaceAll(/[^!-$&-+\--~]/gu, (unit) =>
    Array.from(
      Buffer.from(unit),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    ).join(""),
  );
}
