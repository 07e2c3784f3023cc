// The operator's static token as workers get it: enough to recognise it, alone or inside a longer text, not to tell it.
import { createHash, randomInt } from "node:crypto";

/** A prime below 2^26: the product of two residues is an exact double. */
export const SEARCH_PRIME = 67_108_859;

/** What recognises the operator's token. */
export interface OperatorTokenSpec {
  /** SHA-256 in lower-case hex. */
  sha256: string;
  /** Length in bytes. */
  bytes: number;
  /**
   * The token's residue as a polynomial in a base that is random for each process (Rabin-Karp): it finds where the token
   * may stand in a text in time that does not depend on how much of it is right.
   */
  base: number;
  residue: number;
}

/** Describes a token, which is not empty. */
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
