// Who is calling: the operator by the static token, a user by a JWT.
import type { FieldBlock } from "@platform/http1";
import type { GlobalSpec, JwtSpec, RouteAuthSpec } from "../shared-state/index.ts";
import { OperatorToken } from "./operator-token.ts";

/** What the gateway reads of a verified token. */
export interface TokenClaims {
  readonly sub?: string;
  readonly tenant?: string;
  /** The space-separated `scope`, taken apart. */
  readonly scope: readonly string[];
  readonly roles: readonly string[];
}

/** Checks a token: its claims, at once where everything needed is known; throws or rejects with a PlatformError. */
export type TokenVerifier = (token: string) => TokenClaims | Promise<TokenClaims>;

/** A route's own `auth`. */
export type BearerAuth = Extract<RouteAuthSpec, { type: "bearer" }>;

/** Makes verifiers; the same issuer gives the same one, with its keys and what it verified. */
export interface VerifierSource {
  forGlobal(spec: JwtSpec): TokenVerifier;
  forRoute(spec: BearerAuth): TokenVerifier;
}

/** The identity settings in force. */
export class Identity {
  /** Neither a static token nor JWTs are configured: routes are open, admin paths are for the machine itself. */
  readonly isOpen: boolean;
  /** Checks user tokens; absent where JWTs are not configured. */
  readonly verifyUser: TokenVerifier | undefined;
  readonly #operatorToken: OperatorToken | undefined;

  constructor(globals: GlobalSpec, verifiers: VerifierSource) {
    const { operatorToken, jwt } = globals;
    this.#operatorToken =
      operatorToken === undefined ? undefined : new OperatorToken(operatorToken);
    this.verifyUser = jwt === undefined ? undefined : verifiers.forGlobal(jwt);
    this.isOpen = operatorToken === undefined && jwt === undefined;
  }

  /** Whether the token is the operator's; the time it takes does not depend on how much of it is right. */
  isOperator(token: string): boolean {
    return this.#operatorToken?.is(Buffer.from(token, "latin1")) ?? false;
  }

  /** Whether the request's Authorization holds the operator's token in any form: then it must not go upstream. */
  holdsOperatorToken(fields: FieldBlock): boolean {
    return this.#operatorToken?.isInAuthorization(fields) ?? false;
  }
}

/** The lines that tell an upstream who the user is; laid out once for each set of claims. One per worker. */
export class IdentityLines {
  readonly #lines = new WeakMap<TokenClaims, Buffer>();

  /** `X-User-Id`, `X-User-Roles` and `X-Tenant-Id`, as far as the claims have them, each with its CRLF. */
  layOut(claims: TokenClaims): Buffer {
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
}

// A claim can hold any text; a field value cannot. What is not visible ASCII, and `,` and `%`, is percent-encoded.
function encodeValue(value: string): string {
  return value.replaceAll(/[^!-$&-+\--~]/gu, (unit) =>
    Array.from(
      Buffer.from(unit),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
    ).join(""),
  );
}
