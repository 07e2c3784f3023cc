// Recognises the operator's token: as a whole, and anywhere in credentials that are about to go upstream.
import { hash, timingSafeEqual } from "node:crypto";
import { Known, type FieldBlock } from "@platform/http1";
import { SEARCH_PRIME, type OperatorTokenSpec } from "../shared-state/index.ts";

/** The operator's token of one configuration. */
export class OperatorToken {
  readonly #digest: Buffer;
  readonly #bytes: number;
  readonly #base: number;
  readonly #residue: number;
  /** The weight of the byte that leaves the window. */
  readonly #leaving: number;

  constructor({ sha256, bytes, base, residue }: OperatorTokenSpec) {
    this.#digest = Buffer.from(sha256, "hex");
    this.#bytes = bytes;
    this.#base = base;
    this.#residue = residue;
    let leaving = 1;
    for (let power = 1; power < bytes; power++) leaving = (leaving * base) % SEARCH_PRIME;
    this.#leaving = leaving;
  }

  /** Whether the text is the token; the time it takes does not depend on how much of it is right. */
  is(text: Uint8Array): boolean {
    if (text.length !== this.#bytes) return false;
    return timingSafeEqual(hash("sha256", text, "buffer"), this.#digest);
  }

  /**
   * Whether an Authorization line holds the token in any form: behind another scheme or none, after a tab, in quotes, in a
   * list, in one of several lines, or as a part of Basic credentials.
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
      if (this.is(text.subarray(at + 1 - size, at + 1))) return true;
    }
    return false;
  }
}

const NOTHING = new Uint8Array(0);

/** The decoded part of Basic credentials (RFC 7617); empty for other schemes. */
function decodeBasic(value: Buffer): Uint8Array {
  const credentials = /^basic[ \t]+(\S+)/i.exec(value.toString("latin1"))?.[1];
  return credentials === undefined ? NOTHING : Buffer.from(credentials, "base64");
}
