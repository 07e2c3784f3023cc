// The hashing code over the memory that all threads share: states of bodies, and frames with their bytes.
import { buildCrc64Tables, advanceCrc64, CRC64_START } from "./crc64.ts";
import {
  BLOCK_BYTES,
  buildKernelModule,
  LANES,
  LAYOUT,
  MD5_CONSTANTS,
  type KernelFunctions,
} from "./kernel-module.ts";

const PAGE_BYTES = 65_536;
const STATE_BYTES = 32;
const MD5_START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476] as const;

/** Bytes of a body per frame. */
export const FRAME_BYTES = 256 * 1024;
// A frame has room for the padding of MD5 after its bytes. The distance of frames is not a multiple of 4 KiB: otherwise the
// same offsets of four frames would evict each other from the processor's L1 cache.
const FRAME_STRIDE = FRAME_BYTES + 1024 + 2 * BLOCK_BYTES;

/** Some blocks of one body. */
export interface BlockRun {
  slot: number;
  /** Address of the first block. */
  at: number;
}

/** Memory for a number of bodies in progress and of frames. Untouched pages take no memory. */
export class HashMemory {
  readonly slots: number;
  readonly frames: number;
  readonly memory: WebAssembly.Memory<SharedArrayBuffer>;
  readonly pages: number;
  readonly #statesAt = LAYOUT.end;
  readonly #framesAt: number;

  constructor(slots: number, frames: number, memory?: WebAssembly.Memory<SharedArrayBuffer>) {
    this.slots = slots;
    this.frames = frames;
    // One extra state, for lanes without a body.
    this.#framesAt = roundUp(this.#statesAt + (slots + 1) * STATE_BYTES, PAGE_BYTES);
    this.pages = Math.ceil((this.#framesAt + frames * FRAME_STRIDE) / PAGE_BYTES);
    this.memory =
      memory ?? new WebAssembly.Memory({ initial: this.pages, maximum: this.pages, shared: true });
  }

  /** Address of a body's state. */
  locateState(slot: number): number {
    return this.#statesAt + slot * STATE_BYTES;
  }

  /** Address of a frame. */
  locateFrame(frame: number): number {
    return this.#framesAt + frame * FRAME_STRIDE;
  }

  /** The bytes of a frame, with room for the padding. */
  viewFrame(frame: number): Buffer {
    return Buffer.from(this.memory.buffer, this.locateFrame(frame), FRAME_BYTES + 2 * BLOCK_BYTES);
  }
}

/** Hashes the contents of the memory. Each thread has its own; a slot belongs to one thread at a time. */
export class HashKernel {
  readonly #memory: HashMemory;
  readonly #functions: KernelFunctions;
  readonly #words: Uint32Array;
  readonly #longs: BigUint64Array;
  readonly #bytes: Uint8Array;

  constructor(memory: HashMemory) {
    this.#memory = memory;
    const { buffer } = memory.memory;
    this.#words = new Uint32Array(buffer);
    this.#longs = new BigUint64Array(buffer);
    this.#bytes = new Uint8Array(buffer);
    const module = new WebAssembly.Module(buildKernelModule(memory.pages));
    const instance = new WebAssembly.Instance(module, { env: { memory: memory.memory } });
    this.#functions = instance.exports as unknown as KernelFunctions;
  }

  /** Writes the tables. Once per memory, before anything else. */
  prepare(): void {
    for (const [step, constant] of MD5_CONSTANTS.entries()) {
      const from = LAYOUT.constants / 4 + LANES * step;
      this.#words.fill(constant, from, from + LANES);
    }
    const tableEntries = LAYOUT.tableBytes / 8;
    for (const [index, table] of buildCrc64Tables(8).entries()) {
      this.#longs.set(table, LAYOUT.tables / 8 + tableEntries * index);
    }
  }

  /** Starts a body in a slot. */
  start(slot: number): void {
    const at = this.#memory.locateState(slot);
    this.#words.set(MD5_START, (at + LAYOUT.md5) / 4);
    this.#longs[(at + LAYOUT.crc64) / 8] = CRC64_START;
  }

  /** Hashes whole blocks of a body. */
  run(slot: number, at: number, blocks: number, hasCrc: boolean): void {
    if (blocks === 0) return;
    const state = this.#memory.locateState(slot);
    if (hasCrc) this.#functions.md5Crc64(state, at, blocks);
    else this.#functions.md5(state, at, blocks);
  }

  /** Hashes the same number of blocks, 1 or more, of each of two to four bodies in parallel. */
  runWide(runs: readonly BlockRun[], blocks: number, hasCrc: boolean): void {
    const { slots } = this.#memory;
    // A lane without a body uses the bytes of the first one and discards the result. Results are stored in the order of the
    // lanes, so lanes without a body may share a state.
    const lane = (index: number): BlockRun => runs[index] ?? { slot: slots, at: runs[0]!.at };
    const [a, b, c, d] = [lane(0), lane(1), lane(2), lane(3)];
    const state = (run: BlockRun) => this.#memory.locateState(run.slot);
    const run = hasCrc ? this.#functions.md5Crc64Wide : this.#functions.md5Wide;
    run(state(a), state(b), state(c), state(d), a.at, b.at, c.at, d.at, blocks);
  }

  /** Hashes the last bytes of a body of `total` bytes, followed by room for two blocks. */
  finish(slot: number, at: number, bytes: number, total: number, hasCrc: boolean): void {
    const blocks = Math.floor(bytes / BLOCK_BYTES);
    this.run(slot, at, blocks, hasCrc);
    const rest = at + blocks * BLOCK_BYTES;
    const end = at + bytes;
    if (hasCrc) {
      const crcAt = (this.#memory.locateState(slot) + LAYOUT.crc64) / 8;
      const state = this.#longs[crcAt]!;
      this.#longs[crcAt] = advanceCrc64(state, this.#bytes.subarray(rest, end));
    }
    // Padding: one bit, zeros, the length in bits (RFC 1321 sections 3.1 and 3.2).
    const padded = rest + (end - rest < BLOCK_BYTES - 8 ? BLOCK_BYTES : 2 * BLOCK_BYTES);
    this.#bytes[end] = 0x80;
    this.#bytes.fill(0, end + 1, padded - 8);
    this.#words[(padded - 8) / 4] = (total * 8) >>> 0;
    this.#words[(padded - 4) / 4] = Math.floor(total / 2 ** 29);
    this.run(slot, rest, (padded - rest) / BLOCK_BYTES, false);
  }

  /** The MD5 of a finished body. */
  readMd5(slot: number): Buffer {
    const at = this.#memory.locateState(slot) + LAYOUT.md5;
    return Buffer.from(this.#bytes.slice(at, at + 16));
  }

  /** The state of its CRC. */
  readCrc64(slot: number): bigint {
    return this.#longs[(this.#memory.locateState(slot) + LAYOUT.crc64) / 8]!;
  }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}
