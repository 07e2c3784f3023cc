// The hash of inline bodies in index rows: over 64-bit words, in four independent lanes. It misses a change once in 2^32.
// Rows are hashed each time they are read; a CRC, which processes the bytes in one dependency chain, takes three times as
// long.
import {
  type Code,
  encodeModule,
  FunctionBuilder,
  get,
  i32,
  i64,
  set,
  tee,
} from "../hash/assembler.ts";

const PAGE_BYTES = 65_536;
/** Odd, with half of its bits set (the second prime of xxHash64). */
const FACTOR = 0xc2b2ae3d27d4eb4fn;
const ROTATION = 31n;
const LANES = 4;
const STRIPE_BYTES = 8 * LANES;
/** The result precedes the bytes. */
const BYTES_AT = STRIPE_BYTES;

/** Bytes per step; whole stripes. */
export const BYTES_MAX = PAGE_BYTES - BYTES_AT;

interface Functions {
  /** Hashes 1 or more stripes. */
  hash(stripes: number): void;
}

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
const view = new Uint8Array(memory.buffer);
const words = new Uint32Array(memory.buffer);
const module = new WebAssembly.Module(encodeModule([buildHash()], 1));
const { exports } = new WebAssembly.Instance(module, { env: { memory } });
const functions = exports as unknown as Functions;

/** The 32-bit hash of 1 to `BYTES_MAX` bytes, padded with zeros to a whole stripe. */
export function hashStripes(bytes: Uint8Array): number {
  const end = BYTES_AT + bytes.length;
  const stripes = Math.ceil(bytes.length / STRIPE_BYTES);
  view.set(bytes, BYTES_AT);
  const padded = BYTES_AT + stripes * STRIPE_BYTES;
  if (padded > end) view.fill(0, end, padded);
  functions.hash(stripes);
  return words[0]! ^ words[1]!;
}

function buildHash(): FunctionBuilder {
  const code = new FunctionBuilder("hash");
  const stripes = code.parameter("i32");
  const at = code.local("i32");
  const lanes = Array.from({ length: LANES }, () => code.local("i64"));
  const mix = (hash: Code, word: Code): Code =>
    i64.rotl(i64.mul(i64.xor(hash, word), i64.const(FACTOR)), i64.const(ROTATION));
  for (const [index, lane] of lanes.entries()) {
    code.emit(set(lane, i64.const(FACTOR * BigInt(index + 1))));
  }
  code.repeatWhile(tee(stripes, i32.sub(get(stripes), i32.const(1))), () => {
    for (const [index, lane] of lanes.entries()) {
      code.emit(set(lane, mix(get(lane), i64.load(get(at), BYTES_AT + 8 * index))));
    }
    code.emit(set(at, i32.add(get(at), i32.const(STRIPE_BYTES))));
  });
  const folded = lanes.map(get).reduce((hash, lane) => mix(hash, lane));
  code.emit(i64.store(i32.const(0), folded));
  return code;
}
