// Verified tokens, so that the signature of each is checked once; bounded.
import type { Claims } from "./caller.ts";

/**
 * Claims by token digest, in two generations: tokens move to the young one when they are used, and the old one is dropped
 * when the young one is full. Unlike a list in order of use, a token that is used again and again costs one lookup.
 */
export class VerifiedTokens {
  readonly #youngMax: number;
  #young = new Map<string, Claims>();
  #old = new Map<string, Claims>();

  /** Holds at most `tokensMax` tokens; at least half of them are the ones used last. */
  constructor(tokensMax: number) {
    this.#youngMax = Math.floor(tokensMax / 2);
  }

  /** Number of tokens. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(digest: string): Claims | undefined {
    const known = this.#young.get(digest);
    if (known !== undefined) return known;
    const claims = this.#old.get(digest);
    if (claims === undefined) return undefined;
    this.#old.delete(digest);
    this.add(digest, claims);
    return claims;
  }

  /** Adds a token that is not there. */
  add(digest: string, claims: Claims): void {
    if (this.#youngMax === 0) return;
    if (this.#young.size >= this.#youngMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(digest, claims);
  }

  delete(digest: string): void {
    if (!this.#young.delete(digest)) this.#old.delete(digest);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
