// The hash of seals: the mixing of MurmurHash3 (32 bits) over the columns of a row.
//
// It detects any change within one number or two neighbouring characters, and misses others once in 2^32. It runs for each
// row that is read, so it must be cheap: building a text and hashing it in native code costs several times as much as
// hashing its characters here.
import { BYTES_MAX, hashStripes } from "./bytes-hash.ts";

/** The value of a column. Damage may turn any type into any other, so types are distinguished. */
export type ColumnValue = number | string | Uint8Array | null | undefined;

const NULL = 0x6e756c6c;
const TEXT = 0x74657874;
const BYTES = 0x62797465;
/** Longer values are worth copying to WebAssembly memory, where hashing is faster. */
const FEW_BYTES = 32;

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);

/** Adds a column to a hash; null and undefined are equivalent. */
export function addColumn(hash: number, value: ColumnValue): number {
  if (typeof value === "number") {
    double[0] = value;
    return addWord(addWord(hash, words[0]!), words[1]!);
  }
  if (typeof value === "string") return addWord(hash, hashText(value));
  return addWord(hash, value === null || value === undefined ? NULL : hashBytes(value));
}

/** A text column that is usually the same as in the previous row: it is compared rather than hashed again. */
export class RecurringText {
  #text = "";
  #hash = hashText("");

  /** As `addColumn`. */
  add(hash: number, value: ColumnValue): number {
    if (typeof value !== "string") return addColumn(hash, value);
    if (value !== this.#text) {
      this.#hash = hashText(value);
      this.#text = value;
    }
    return addWord(hash, this.#hash);
  }
}

function hashText(text: string): number {
  const { length } = text;
  let hash = addWord(TEXT, length);
  let at = 0;
  for (; at + 1 < length; at += 2) {
    hash = addWord(hash, text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16));
  }
  return at < length ? addWord(hash, text.charCodeAt(at)) : hash;
}

function hashBytes(bytes: Uint8Array): number {
  const { length } = bytes;
  let hash = addWord(BYTES, length);
  if (length <= FEW_BYTES) {
    for (let at = 0; at < length; at += 1) hash = addWord(hash, bytes[at]!);
    return hash;
  }
  for (let at = 0; at < length; at += BYTES_MAX) {
    const piece = length <= BYTES_MAX ? bytes : bytes.subarray(at, at + BYTES_MAX);
    hash = addWord(hash, hashStripes(piece));
  }
  return hash;
}

function addWord(hash: number, word: number): number {
  const scaled = Math.imul(word, 0xcc9e2d51);
  const mixed = hash ^ Math.imul((scaled << 15) | (scaled >>> 17), 0x1b873593);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}
