// Scans the next thousands of bytes of a text at once, 16 bytes at a time in WebAssembly, for the bytes that matter in them.
import {
  type Code,
  encodeModule,
  type FunctionBuilder,
  get,
  i32,
  type Local,
  set,
} from "../../hash/assembler.ts";

const PAGE_BYTES = 65_536;
const WORD_BYTES = 4;
/** Bytes of one scan. */
const SCAN_BYTES_MAX = PAGE_BYTES;
/** Fewer bytes are not worth a scan. */
const SCAN_BYTES_MIN = 4_096;
/** Bytes of a scan after one that ended early: what is copied for it costs more than what it finds otherwise. */
const WINDOW_MIN = 1_024;
/** A scan that ends early, with fewer records, makes the next one wait. */
const RECORDS_MIN = 64;
/** Records before the next scan, at most. */
const PAUSE_MAX = 512;

/** The bytes of a vector. */
export const BLOCK_BYTES = 16;
/** The memory of a scan in bytes: the text from 0 on, and two tables that have room for all of it. */
export const LAYOUT = {
  /** Positions of marked bytes. */
  marks: SCAN_BYTES_MAX,
  /** Addresses behind the last mark of each record. */
  records: SCAN_BYTES_MAX * (1 + WORD_BYTES),
  /** The end of the table of records is written here. */
  end: SCAN_BYTES_MAX * (1 + 2 * WORD_BYTES),
} as const;
const MEMORY_PAGES = LAYOUT.end / PAGE_BYTES + 1;
const MARKS_INDEX = LAYOUT.marks / WORD_BYTES;
const RECORDS_INDEX = LAYOUT.records / WORD_BYTES;
const END_INDEX = LAYOUT.end / WORD_BYTES;

/** The position in a mark, whose higher bits are free. */
export const POSITION_MASK = SCAN_BYTES_MAX - 1;

/** Compiles a function `scan(size, …options)` that fills the tables for `size` bytes, a multiple of `BLOCK_BYTES`. */
export function compileScan(scan: FunctionBuilder): WebAssembly.Module {
  return new WebAssembly.Module(encodeModule([scan], MEMORY_PAGES));
}

/** Code that adds a word to a table. */
export function append(table: Local, word: Code): Code {
  return [
    ...i32.store(get(table), word),
    ...set(table, i32.add(get(table), i32.const(WORD_BYTES))),
  ];
}

/**
 * The records ahead in a text, one after another. The current one has the marks from `first` to `behind` in `words`, of which
 * the last one ends it; positions count from `base`.
 */
export class ScanAhead {
  words = new Int32Array(0);
  base = 0;
  first = 0;
  behind = 0;
  readonly #compile: () => WebAssembly.Module;
  readonly #options: readonly number[];
  #bytes = new Uint8Array(0);
  #run: ((size: number) => void) | undefined;
  #next = 0;
  #count = 0;
  /** Bytes of the next scan, at most. */
  #window = SCAN_BYTES_MIN;
  #pause = 1;
  /** Records until the next scan. */
  #untilScan = 0;

  constructor(compile: () => WebAssembly.Module, options: readonly number[]) {
    this.#compile = compile;
    this.#options = options;
  }

  /** Moves to the record that begins at `at`. False if it must be looked at byte by byte. */
  next(bytes: Uint8Array, at: number): boolean {
    if (this.#next === this.#count && !this.#scan(bytes, at)) return false;
    this.first = this.behind;
    this.behind = this.words[RECORDS_INDEX + this.#next]! / WORD_BYTES;
    this.#next += 1;
    return true;
  }

  /** Forgets the records that have been found, because the bytes move. */
  reset(): void {
    this.#next = this.#count;
  }

  #scan(bytes: Uint8Array, at: number): boolean {
    if (bytes.length - at < SCAN_BYTES_MIN) return false;
    this.#untilScan -= 1;
    if (this.#untilScan > 0) return false;
    const size = Math.min(bytes.length - at, this.#window) & -BLOCK_BYTES;
    this.#run ??= this.#open();
    this.#bytes.set(bytes.subarray(at, at + size));
    this.#run(size);
    this.base = at;
    this.behind = MARKS_INDEX;
    this.#next = 0;
    this.#count = this.words[END_INDEX]! / WORD_BYTES - RECORDS_INDEX;
    this.#plan(size);
    return this.#count > 0;
  }

  // A scan that something has ended early, after few records, was not worth its copy.
  #plan(size: number): void {
    const count = this.#count;
    let found = 0;
    if (count > 0) {
      const behind = this.words[RECORDS_INDEX + count - 1]! / WORD_BYTES;
      found = (this.words[behind - 1]! & POSITION_MASK) + 1;
    }
    const isWhole = count > 0 && size - found <= (2 * found) / count;
    this.#pause = isWhole || count >= RECORDS_MIN ? 1 : Math.min(this.#pause * 2, PAUSE_MAX);
    this.#untilScan = this.#pause;
    const next = isWhole ? this.#window * 2 : Math.max(found * 2, WINDOW_MIN);
    this.#window = Math.min(next, SCAN_BYTES_MAX);
  }

  // Short texts need none of it.
  #open(): (size: number) => void {
    const pages = MEMORY_PAGES;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.#bytes = new Uint8Array(memory.buffer);
    this.words = new Int32Array(memory.buffer);
    const { exports } = new WebAssembly.Instance(this.#compile(), { env: { memory } });
    const scan = exports.scan as (size: number, ...options: readonly number[]) => void;
    return (size) => scan(size, ...this.#options);
  }
}
