// Recognizes the operator token, alone and anywhere inside credentials that would be forwarded.
import { hash, timingSafeEqual } from "node:crypto";
import { Known, type FieldBlock } from "@platform/http1";
import { SEARCH_PRIME, type OperatorTokenSpec } from "../../shared-state/index.ts";

/** The operator token of one configuration. */
export class OperatorToken {
  readonly #digest: Buffer;
  readonly #bytes: number;
  readonly #base: number;
  readonly #residue: number;
  /** Weight of the byte that leaves the sliding window. */
  readonly #leaving: number;
  readonly #endsAtMs: number;

  constructor({ sha256, bytes, base, residue, endsAtMs = Infinity }: OperatorTokenSpec) {
    this.#endsAtMs = endsAtMs;
    this.#digest = Buffer.from(sha256, "hex");
    this.#bytes = bytes;
    this.#base = base;
    this.#residue = residue;
    let leaving = 1;
    for (let power = 1; power < bytes; power++) leaving = (leaving * base) % SEARCH_PRIME;
    this.#leaving = leaving;
  }

  /** True if the text is the token and the token has not ended; compares in constant time. */
  admits(text: Uint8Array): boolean {
    return this.#is(text) && Date.now() < this.#endsAtMs;
  }

  #is(text: Uint8Array): boolean {
    if (text.length !== this.#bytes) return false;
    return timingSafeEqual(hash("sha256", text, "buffer"), this.#digest);
  }

  /**
   * True if an Authorization line contains the token in any form: after any scheme or no scheme, after a tab, quoted, in a
   * list, in one of several lines, or inside Basic credentials.
   */
  isInAuthorization(fields: FieldBlock): boolean {
    let line = fields.first(Known.Authorization);
    for (; line !== -1; line = fields.next(line)) {
      const value = fields.bytes.subarray(fields.valueStart(line), fields.valueEnd(line));
      if (this.#isIn(value) || this.#isIn(decodeBasic(value))) return true;
    }
    return false;
  }

  #isIn(text: Uint8Array): boolean {
    const size = this.#bytes;
    let residue = 0;
    for (let at = 0; at < text.length; at++) {
      if (at >= size) {
        const left = (text[at - size]! * this.#leaving) % SEARCH_PRIME;
        residue = (residue + SEARCH_PRIME - left) % SEARCH_PRIME;
      }
      residue = (residue * this.#base + text[at]!) % SEARCH_PRIME;
      if (residue !== this.#residue || at + 1 < size) continue;
      if (this.#is(text.subarray(at + 1 - size, at + 1))) return true;
    }
    return false;
  }
}

const EMPTY = new Uint8Array(0);

/** The decoded Basic credentials (RFC 7617); empty for other schemes. */
function decodeBasic(value: Buffer): Uint8Array {
  const credentials = /^basic[ \t]+(\S+)/i.exec(value.toString("latin1"))?.[1];
  return credentials === undefined ? EMPTY : Buffer.from(credentials, "base64");
}
