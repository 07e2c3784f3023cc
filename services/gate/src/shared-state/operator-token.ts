// The operator's static token in a form that lets workers recognize it, alone or inside a text, without containing it.
import { createHash, randomInt } from "node:crypto";
import type { LiveSecret } from "@platform/kernel/secrets";

/** A prime below 2^26: the product of two residues is an exact double. */
export const SEARCH_PRIME = 67_108_859;

/** Recognizes the operator token. */
export interface OperatorTokenSpec {
  /** SHA-256 in lower-case hex. */
  sha256: string;
  /** Length in bytes. */
  bytes: number;
  /**
   * The token's residue as a polynomial in a base that is random for each process (Rabin-Karp): finds candidate positions
   * in a text in time that does not depend on how much of the token matches.
   */
  base: number;
  residue: number;
  /** Time from which it is not accepted any more, in ms since 1970; it was replaced by another one. */
  endsAtMs?: number;
}

/** Describes the values of a secret that are accepted. */
export function describeTokens(secret: LiveSecret): OperatorTokenSpec[] {
  return secret.describe().map(({ value, ends_at: endsAtMs }) => ({
    ...describeOperatorToken(value),
    ...(endsAtMs === undefined ? {} : { endsAtMs }),
  }));
}

/** Describes a non-empty token. */
export function describeOperatorToken(token: string): OperatorTokenSpec {
  const bytes = Buffer.from(token);
  const base = randomInt(256, SEARCH_PRIME);
  let residue = 0;
  for (const byte of bytes) residue = (residue * base + byte) % SEARCH_PRIME;
  return {
    sha256: createHash("sha256").update(bytes).digest("hex"),
    bytes: bytes.length,
    base,
    residue,
  };
}
