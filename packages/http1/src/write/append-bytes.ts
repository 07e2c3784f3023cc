// Copies bytes and writes numbers into a buffer, in the way that is fastest for their length. The buffer has room for them.
import { ZERO } from "../parse/bytes.ts";

// Measured on Node: `set` of a whole array takes 15 ns of any length, `copy` of a range 31 ns, a loop 1 ns per byte.
const LOOP_SET_BYTES = 12;
const LOOP_COPY_BYTES = 24;

/** Copies all of `source` to `target` at `at`; returns the end of the copy. */
export function appendBytes(target: Uint8Array, at: number, source: Uint8Array): number {
  const size = source.length;
  if (size > LOOP_SET_BYTES) target.set(source, at);
  else for (let from = 0; from < size; from++) target[at + from] = source[from]!;
  return at + size;
}

/** Copies `source[start, end)` to `target` at `at`; returns the end of the copy. */
export function appendRange(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  if (end - start > LOOP_COPY_BYTES) {
    source.copy(target, at, start, end);
    return at + end - start;
  }
  let to = at;
  for (let from = start; from < end; from++) target[to++] = source[from]!;
  return to;
}

/** Writes a non-negative integer in decimal digits, at most 16; returns their end. */
export function appendDecimal(target: Uint8Array, at: number, value: number): number {
  let digits = 1;
  for (let rest = Math.floor(value / 10); rest > 0; rest = Math.floor(rest / 10)) digits++;
  let rest = value;
  for (let to = at + digits - 1; to >= at; to--) {
    target[to] = ZERO + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return at + digits;
}
