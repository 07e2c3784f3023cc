// Ranges of keys in binary order, and common prefixes.

/** The smallest key after all keys with `prefix`; `undefined` if there is none. */
export function findEndOfPrefix(prefix: Buffer): Buffer | undefined {
  for (let last = prefix.length - 1; last >= 0; last -= 1) {
    const byte = prefix[last]!;
    if (byte === 0xff) continue;
    const end = Buffer.from(prefix.subarray(0, last + 1));
    end[last] = byte + 1;
    return end;
  }
  return undefined;
}

/** The smallest key after `key`. */
export function findNextKey(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.alloc(1)]);
}

/** Keys from `from` up to, not including, `to`. */
export interface KeyRange {
  from: Buffer;
  to: Buffer | undefined;
}

/** Keys under a prefix after a position. */
export function buildKeyRange(
  prefix: string,
  after: { value: string; isPrefix: boolean } | undefined,
): KeyRange | undefined {
  const start = Buffer.from(prefix);
  const to = findEndOfPrefix(start);
  if (after === undefined) return { from: start, to };
  const value = Buffer.from(after.value);
  const next = after.isPrefix ? findEndOfPrefix(value) : findNextKey(value);
  if (next === undefined) return undefined;
  const from = Buffer.compare(next, start) > 0 ? next : start;
  if (to !== undefined && Buffer.compare(from, to) >= 0) return undefined;
  return { from, to };
}

/** The common prefix of a key: up to and including the first delimiter after the prefix. */
export function findCommonPrefix(
  key: Buffer,
  prefixBytes: number,
  delimiter: Buffer | undefined,
): Buffer | undefined {
  if (delimiter === undefined || delimiter.length === 0) return undefined;
  const at = key.indexOf(delimiter, prefixBytes);
  return at < 0 ? undefined : key.subarray(0, at + delimiter.length);
}

/** A buffer on the memory that SQLite returned. */
export function viewBytes(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
