// Writes WebAssembly modules: the subset of the binary format (WebAssembly Core Specification 2.0, section 5) that hashing,
// searching and scanning need. An expression is the code of its operands followed by the instruction.

/** Encoded instructions. */
export type Code = readonly number[];

/** A value type (section 5.3.1). */
export type ValueType = "i32" | "i64" | "v128";

/** A parameter or a local variable of one function, by its index. */
export interface Local {
  readonly index: number;
}

const VALUE_TYPES: Record<ValueType, number> = { i32: 0x7f, i64: 0x7e, v128: 0x7b };
const PREAMBLE = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const SIMD = 0xfd;
const FUNCTION_TYPE = 0x60;
const SHARED_LIMITS = 0x03;

/** A function under construction, without results. */
export class FunctionBuilder {
  readonly name: string;
  readonly #parameters: ValueType[] = [];
  readonly #locals: ValueType[] = [];
  #body: number[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** The next parameter. All parameters come before the first local. */
  parameter(type: ValueType): Local {
    return { index: this.#parameters.push(type) - 1 };
  }

  /** A new local, initially zero. */
  local(type: ValueType): Local {
    return { index: this.#parameters.length + this.#locals.push(type) - 1 };
  }

  /** Appends instructions. */
  emit(...codes: Code[]): void {
    for (const code of codes) this.#body.push(...code);
  }

  /** Appends a loop over the code that `build` emits. It runs once, and repeats while `condition` is not zero. */
  repeatWhile(condition: Code, build: () => void): void {
    this.emit([0x03, 0x40], this.#collect(build), condition, [0x0d, 0x00, 0x0b]);
  }

  /** Appends the code that `build` emits, run if `condition` is not zero, and that of `otherwise`, run if it is. */
  emitIf(condition: Code, build: () => void, otherwise?: () => void): void {
    const alternative = otherwise === undefined ? [] : [0x05, ...this.#collect(otherwise)];
    this.emit(condition, [0x04, 0x40], this.#collect(build), alternative, [0x0b]);
  }

  #collect(build: () => void): Code {
    const outer = this.#body;
    this.#body = [];
    build();
    const inner = this.#body;
    this.#body = outer;
    return inner;
  }

  /** Its type (section 5.3.6). */
  encodeType(): Code {
    const parameters = this.#parameters.map((type) => [VALUE_TYPES[type]]);
    return [FUNCTION_TYPE, ...encodeVector(parameters), 0];
  }

  /** Its entry in the code section (section 5.5.13). */
  encodeBody(): Code {
    const locals = this.#locals.map((type) => [1, VALUE_TYPES[type]]);
    const body = [...encodeVector(locals), ...this.#body, 0x0b];
    return [...encodeUnsigned(body.length), ...body];
  }
}

/** A module of functions over one shared memory, which it imports as `env.memory`. Pages have 64 KiB. */
export function encodeModule(
  functions: readonly FunctionBuilder[],
  memoryPages: number,
): Uint8Array<ArrayBuffer> {
  const pages = encodeUnsigned(memoryPages);
  const memory = [
    ...encodeName("env"),
    ...encodeName("memory"),
    2,
    SHARED_LIMITS,
    ...pages,
    ...pages,
  ];
  const indexes = functions.map((_, index) => encodeUnsigned(index));
  const exported = functions.map(({ name }, index) => [
    ...encodeName(name),
    0,
    ...encodeUnsigned(index),
  ]);
  return Uint8Array.from([
    ...PREAMBLE,
    ...encodeSection(
      1,
      functions.map((one) => one.encodeType()),
    ),
    ...encodeSection(2, [memory]),
    ...encodeSection(3, indexes),
    ...encodeSection(7, exported),
    ...encodeSection(
      10,
      functions.map((one) => one.encodeBody()),
    ),
  ]);
}

/** The value of a variable. */
export function get({ index }: Local): Code {
  return [0x20, ...encodeUnsigned(index)];
}

/** Assigns a value to a variable. */
export function set({ index }: Local, value: Code): Code {
  return [...value, 0x21, ...encodeUnsigned(index)];
}

/** Assigns a value to a variable; the expression has the same value. */
export function tee({ index }: Local, value: Code): Code {
  return [...value, 0x22, ...encodeUnsigned(index)];
}

/** Instructions for 32-bit integers. */
export const i32 = {
  const: (value: number): Code => [0x41, ...encodeSigned(BigInt(value | 0))],
  load: (at: Code, offset = 0): Code => [...at, 0x28, 2, ...encodeUnsigned(offset)],
  /** One byte, as an unsigned number. */
  load8: (at: Code, offset = 0): Code => [...at, 0x2d, 0, ...encodeUnsigned(offset)],
  store: (at: Code, value: Code, offset = 0): Code => [
    ...at,
    ...value,
    0x36,
    2,
    ...encodeUnsigned(offset),
  ],
  add: (a: Code, b: Code): Code => [...a, ...b, 0x6a],
  sub: (a: Code, b: Code): Code => [...a, ...b, 0x6b],
  and: (a: Code, b: Code): Code => [...a, ...b, 0x71],
  or: (a: Code, b: Code): Code => [...a, ...b, 0x72],
  xor: (a: Code, b: Code): Code => [...a, ...b, 0x73],
  rotl: (a: Code, bits: Code): Code => [...a, ...bits, 0x77],
  shl: (a: Code, bits: Code): Code => [...a, ...bits, 0x74],
  shrU: (a: Code, bits: Code): Code => [...a, ...bits, 0x76],
  isZero: (a: Code): Code => [...a, 0x45],
  equal: (a: Code, b: Code): Code => [...a, ...b, 0x46],
  lessU: (a: Code, b: Code): Code => [...a, ...b, 0x49],
  /** The number of zeros below the lowest one. */
  trailingZeros: (a: Code): Code => [...a, 0x68],
  /** The lower half of a 64-bit integer. */
  wrap: (a: Code): Code => [...a, 0xa7],
};

/** Instructions for 64-bit integers. */
export const i64 = {
  const: (value: bigint): Code => [0x42, ...encodeSigned(BigInt.asIntN(64, value))],
  load: (at: Code, offset = 0): Code => [...at, 0x29, 3, ...encodeUnsigned(offset)],
  store: (at: Code, value: Code, offset = 0): Code => [
    ...at,
    ...value,
    0x37,
    3,
    ...encodeUnsigned(offset),
  ],
  mul: (a: Code, b: Code): Code => [...a, ...b, 0x7e],
  xor: (a: Code, b: Code): Code => [...a, ...b, 0x85],
  rotl: (a: Code, bits: Code): Code => [...a, ...bits, 0x89],
  shl: (a: Code, bits: Code): Code => [...a, ...bits, 0x86],
  shrU: (a: Code, bits: Code): Code => [...a, ...bits, 0x88],
};

/** Instructions for 128-bit vectors, as four 32-bit lanes for arithmetic. */
export const v128 = {
  load: (at: Code, offset = 0): Code => [...at, ...simd(0x00), 0, ...encodeUnsigned(offset)],
  store: (at: Code, value: Code, offset = 0): Code => [
    ...at,
    ...value,
    ...simd(0x0b),
    0,
    ...encodeUnsigned(offset),
  ],
  /** The 32 bits at an address in all four lanes. */
  load32Splat: (at: Code, offset = 0): Code => [...at, ...simd(0x09), 2, ...encodeUnsigned(offset)],
  /** `vector` with one lane loaded from an address. */
  load32Lane: (at: Code, vector: Code, lane: number, offset = 0): Code => [
    ...at,
    ...vector,
    ...simd(0x56),
    2,
    ...encodeUnsigned(offset),
    lane,
  ],
  store32Lane: (at: Code, vector: Code, lane: number, offset = 0): Code => [
    ...at,
    ...vector,
    ...simd(0x5a),
    2,
    ...encodeUnsigned(offset),
    lane,
  ],
  /** The lowest byte of an integer in all 16 lanes. */
  splat8: (a: Code): Code => [...a, ...simd(0x0f)],
  /** Lanes of ones where the condition holds for the bytes. */
  equal8: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x23)],
  lessU8: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x26)],
  /** The highest bit of each of 16 lanes, as an integer. */
  bitmask8: (a: Code): Code => [...a, ...simd(0x64)],
  /** Four of the eight lanes of `a` and `b`; those of `b` count from 4. */
  shuffle: (a: Code, b: Code, lanes: readonly [number, number, number, number]): Code => [
    ...a,
    ...b,
    ...simd(0x0d),
    ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
  ],
  not: (a: Code): Code => [...a, ...simd(0x4d)],
  and: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x4e)],
  /** `a` without the bits of `b`. */
  andNot: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x4f)],
  or: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x50)],
  xor: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x51)],
  shl: (a: Code, bits: Code): Code => [...a, ...bits, ...simd(0xab)],
  shrU: (a: Code, bits: Code): Code => [...a, ...bits, ...simd(0xad)],
  add: (a: Code, b: Code): Code => [...a, ...b, ...simd(0xae)],
  /** The lower or upper eight of 16 signed 8-bit lanes, as 16-bit lanes. */
  extendLow8: (a: Code): Code => [...a, ...simd(0x87)],
  extendHigh8: (a: Code): Code => [...a, ...simd(0x88)],
  /** Products of eight signed 16-bit lanes, of which neighbours are added. */
  dot16: (a: Code, b: Code): Code => [...a, ...b, ...simd(0xba)],
  /** Four 32-bit floating-point lanes. */
  addFloats: (a: Code, b: Code): Code => [...a, ...b, ...simd(0xe4)],
  mulFloats: (a: Code, b: Code): Code => [...a, ...b, ...simd(0xe6)],
};

function simd(instruction: number): Code {
  return [SIMD, ...encodeUnsigned(instruction)];
}

function encodeSection(id: number, entries: readonly Code[]): Code {
  const content = encodeVector(entries);
  return [id, ...encodeUnsigned(content.length), ...content];
}

function encodeVector(entries: readonly Code[]): Code {
  return [...encodeUnsigned(entries.length), ...entries.flat()];
}

function encodeName(name: string): Code {
  return encodeVector([...Buffer.from(name)].map((byte) => [byte]));
}

// LEB128 (section 5.2.2).
function encodeUnsigned(value: number): Code {
  const bytes: number[] = [];
  let left = value;
  while (left >= 0x80) {
    bytes.push((left & 0x7f) | 0x80);
    left >>>= 7;
  }
  return [...bytes, left];
}

function encodeSigned(value: bigint): Code {
  const bytes: number[] = [];
  let left = value;
  for (;;) {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    const isLast = (left === 0n && low < 0x40) || (left === -1n && low >= 0x40);
    if (isLast) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}
