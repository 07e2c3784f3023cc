// The code that hashes bodies: MD5 (RFC 1321) over one body or four at once, with CRC-64/NVME of the same bytes in the same
// loop.
//
// Each step of MD5 depends on the previous one, so a core is idle most of the time. Four bodies in the lanes of a vector
// take little longer than one, and the table lookups of the CRC fit into the gaps.
import {
  type Code,
  encodeModule,
  FunctionBuilder,
  get,
  i32,
  i64,
  type Local,
  set,
  tee,
  v128,
  type ValueType,
} from "./assembler.ts";

/** Bytes of a block of MD5. */
export const BLOCK_BYTES = 64;
/** Number of bodies of the wide functions. */
export const LANES = 4;

/** The layout of the module's memory, in bytes. */
export const LAYOUT = {
  /** The 64 constants of MD5, each four times: 16 bytes each. */
  constants: 0,
  /** Eight tables of the CRC: 256 entries of 8 bytes each. */
  tables: 1024,
  tableBytes: 2048,
  /** Within the state of a body: four 32-bit words of MD5, 64 bits of the CRC. */
  md5: 0,
  crc64: 16,
  end: 1024 + 8 * 2048,
} as const;

/** The exports of the module. `state` and `at` are addresses, `blocks` is 1 or more. */
export interface KernelFunctions {
  md5(state: number, at: number, blocks: number): void;
  md5Crc64(state: number, at: number, blocks: number): void;
  md5Wide: WideFunction;
  md5Crc64Wide: WideFunction;
}

/** Hashes the same number of blocks of each of four bodies, whose states must differ. */
type WideFunction = (...args: [...states: Four, ...ats: Four, blocks: number]) => void;
type Four = [number, number, number, number];

/** The constants of MD5's 64 steps (RFC 1321 section 3.4). */
export const MD5_CONSTANTS: readonly number[] = Array.from(
  { length: 64 },
  (_, step) => Math.floor(Math.abs(Math.sin(step + 1)) * 2 ** 32) >>> 0,
);

/** Builds the module over a shared memory of `pages` pages. */
export function buildKernelModule(memoryPages: number): Uint8Array<ArrayBuffer> {
  return encodeModule(
    [
      buildNarrow("md5", false),
      buildNarrow("md5Crc64", true),
      buildWide("md5Wide", false),
      buildWide("md5Crc64Wide", true),
    ],
    memoryPages,
  );
}

const SHIFTS = [
  [7, 12, 17, 22],
  [5, 9, 14, 20],
  [4, 11, 16, 23],
  [6, 10, 15, 21],
] as const;
const STEPS = 64;

function chooseWord(step: number): number {
  const inRound = step % 16;
  const chosen = [inRound, 5 * inRound + 1, 3 * inRound + 5, 7 * inRound] as const;
  return chosen[step >> 4]! % 16;
}

// Arithmetic on one word, or on a vector of four.
interface Words {
  type: ValueType;
  add(a: Code, b: Code): Code;
  and(a: Code, b: Code): Code;
  andNot(a: Code, b: Code): Code;
  or(a: Code, b: Code): Code;
  xor(a: Code, b: Code): Code;
  not(a: Code): Code;
  rotate(value: Code, bits: number, spare: Local): Code;
  constant(step: number): Code;
}

const not32 = (a: Code) => i32.xor(a, i32.const(-1));
const narrow: Words = {
  ...i32,
  type: "i32",
  not: not32,
  andNot: (a, b) => i32.and(a, not32(b)),
  rotate: (value, bits) => i32.rotl(value, i32.const(bits)),
  constant: (step) => i32.const(MD5_CONSTANTS[step]!),
};
const wide: Words = {
  ...v128,
  type: "v128",
  rotate: (value, bits, spare) =>
    v128.or(
      v128.shl(tee(spare, value), i32.const(bits)),
      v128.shrU(get(spare), i32.const(32 - bits)),
    ),
  // Loaded from memory: a literal costs more instructions.
  constant: (step) => v128.load(i32.const(0), LAYOUT.constants + 16 * step),
};

type Chain = [Local, Local, Local, Local];

// One block. `word` is the code of a word of the message; the code from `between` is placed after each step.
function emitBlock(
  code: FunctionBuilder,
  words: Words,
  chain: Chain,
  word: (index: number) => Code,
  between: (step: number) => Code,
): void {
  const before = chain.map(() => code.local(words.type));
  const spare = code.local(words.type);
  for (const [index, local] of before.entries()) code.emit(set(local, get(chain[index]!)));
  let [a, b, c, d] = chain;
  for (let step = 0; step < STEPS; step += 1) {
    const begun = words.add(get(a), words.add(word(chooseWord(step)), words.constant(step)));
    const sum = addRound(words, step >> 4, begun, [b, c, d]);
    const shift = SHIFTS[step >> 4]![step % 4]!;
    code.emit(set(a, words.add(get(b), words.rotate(sum, shift, spare))), between(step));
    [a, b, c, d] = [d, a, b, c];
  }
  for (const [index, local] of before.entries()) {
    code.emit(set(chain[index]!, words.add(get(chain[index]!), get(local))));
  }
}

// F, G, H and I, each written so that few operations wait for `b`, which is available last.
function addRound(words: Words, round: number, sum: Code, [b, c, d]: Local[]): Code {
  const [x, y, z] = [get(b!), get(c!), get(d!)];
  switch (round) {
    case 0:
      return words.add(sum, words.xor(z, words.and(x, words.xor(y, z))));
    case 1:
      return words.add(words.add(sum, words.andNot(y, z)), words.and(x, z));
    case 2:
      return words.add(sum, words.xor(x, words.xor(y, z)));
    default:
      return words.add(sum, words.xor(y, words.or(x, words.not(z))));
  }
}

function buildNarrow(name: string, hasCrc: boolean): FunctionBuilder {
  const code = new FunctionBuilder(name);
  const [state, at, blocks] = [
    code.parameter("i32"),
    code.parameter("i32"),
    code.parameter("i32"),
  ] as const;
  const chain = [0, 1, 2, 3].map(() => code.local("i32")) as Chain;
  const crc = code.local("i64");
  for (const [index, local] of chain.entries()) {
    code.emit(set(local, i32.load(get(state), LAYOUT.md5 + 4 * index)));
  }
  if (hasCrc) code.emit(set(crc, i64.load(get(state), LAYOUT.crc64)));
  const crcEvery = STEPS / (BLOCK_BYTES / 8);
  code.repeatWhile(countDown(blocks), () => {
    emitBlock(
      code,
      narrow,
      chain,
      (index) => i32.load(get(at), 4 * index),
      (step) => {
        if (!hasCrc || step % crcEvery !== crcEvery - 1) return [];
        return advanceCrc(crc, at, 8 * Math.floor(step / crcEvery));
      },
    );
    code.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  for (const [index, local] of chain.entries()) {
    code.emit(i32.store(get(state), get(local), LAYOUT.md5 + 4 * index));
  }
  if (hasCrc) code.emit(i64.store(get(state), get(crc), LAYOUT.crc64));
  return code;
}

function buildWide(name: string, hasCrc: boolean): FunctionBuilder {
  const code = new FunctionBuilder(name);
  const states = [0, 1, 2, 3].map(() => code.parameter("i32"));
  const ats = [0, 1, 2, 3].map(() => code.parameter("i32"));
  const blocks = code.parameter("i32");
  const chain = [0, 1, 2, 3].map(() => code.local("v128")) as Chain;
  const crcs = [0, 1, 2, 3].map(() => code.local("i64"));
  const message = Array.from({ length: 16 }, () => code.local("v128"));
  const rows = Array.from({ length: 8 }, () => code.local("v128"));
  for (const [index, local] of chain.entries()) {
    const offset = LAYOUT.md5 + 4 * index;
    const [first, ...others] = states;
    const gathered = others.reduce(
      (vector, state, lane) => v128.load32Lane(get(state), vector, lane + 1, offset),
      v128.load32Splat(get(first!), offset),
    );
    code.emit(set(local, gathered));
  }
  if (hasCrc) {
    for (const [lane, crc] of crcs.entries()) {
      code.emit(set(crc, i64.load(get(states[lane]!), LAYOUT.crc64)));
    }
  }
  code.repeatWhile(countDown(blocks), () => {
    for (let quarter = 0; quarter < 4; quarter += 1) {
      emitTransposition(code, ats, message.slice(4 * quarter, 4 * quarter + 4), rows, 16 * quarter);
    }
    emitBlock(
      code,
      wide,
      chain,
      (index) => get(message[index]!),
      (step) => {
        // 32 words of 8 bytes in 64 steps, body by body.
        if (!hasCrc || step % 2 === 0) return [];
        const turn = step >> 1;
        const lane = turn % LANES;
        return advanceCrc(crcs[lane]!, ats[lane]!, 8 * Math.floor(turn / LANES));
      },
    );
    for (const at of ats) code.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  for (const [lane, state] of states.entries()) {
    for (const [index, local] of chain.entries()) {
      code.emit(v128.store32Lane(get(state), get(local), lane, LAYOUT.md5 + 4 * index));
    }
    if (hasCrc) code.emit(i64.store(get(state), get(crcs[lane]!), LAYOUT.crc64));
  }
  return code;
}

// Transposes four words of each of four bodies to four vectors with the same word of all bodies.
function emitTransposition(
  code: FunctionBuilder,
  ats: readonly Local[],
  into: readonly Local[],
  rows: readonly Local[],
  offset: number,
): void {
  const [r0, r1, r2, r3, low01, high01, low23, high23] = rows as readonly [
    ...[Local, Local, Local, Local],
    ...[Local, Local, Local, Local],
  ];
  for (const [lane, row] of [r0, r1, r2, r3].entries()) {
    code.emit(set(row, v128.load(get(ats[lane]!), offset)));
  }
  code.emit(
    set(low01, v128.shuffle(get(r0), get(r1), [0, 4, 1, 5])),
    set(high01, v128.shuffle(get(r0), get(r1), [2, 6, 3, 7])),
    set(low23, v128.shuffle(get(r2), get(r3), [0, 4, 1, 5])),
    set(high23, v128.shuffle(get(r2), get(r3), [2, 6, 3, 7])),
    set(into[0]!, v128.shuffle(get(low01), get(low23), [0, 1, 4, 5])),
    set(into[1]!, v128.shuffle(get(low01), get(low23), [2, 3, 6, 7])),
    set(into[2]!, v128.shuffle(get(high01), get(high23), [0, 1, 4, 5])),
    set(into[3]!, v128.shuffle(get(high01), get(high23), [2, 3, 6, 7])),
  );
}

// Eight bytes at a time, with one table for each (slicing-by-8).
function advanceCrc(crc: Local, at: Local, offset: number): Code {
  const looked = [0, 1, 2, 3, 4, 5, 6, 7].map((byte) => {
    // The byte times the 8 bytes of an entry.
    const shifted =
      byte === 0
        ? i64.shl(get(crc), i64.const(3n))
        : i64.shrU(get(crc), i64.const(BigInt(8 * byte - 3)));
    const entry = i32.and(i32.wrap(shifted), i32.const(0xff << 3));
    return i64.load(entry, LAYOUT.tables + LAYOUT.tableBytes * (7 - byte));
  });
  return [...set(crc, i64.xor(get(crc), i64.load(get(at), offset))), ...set(crc, xorAll(looked))];
}

// As a tree, to shorten the dependency chain.
function xorAll(values: readonly Code[]): Code {
  if (values.length === 1) return values[0]!;
  const half = values.length / 2;
  return i64.xor(xorAll(values.slice(0, half)), xorAll(values.slice(half)));
}

function countDown(counter: Local): Code {
  return tee(counter, i32.sub(get(counter), i32.const(1)));
}
