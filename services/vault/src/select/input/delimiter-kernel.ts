// WebAssembly that finds the delimiters of CSV, 16 bytes at a time.
import {
  encodeModule,
  FunctionBuilder,
  get,
  i32,
  type Local,
  set,
  v128,
} from "../../hash/assembler.ts";

const PAGE_BYTES = 65_536;
const BLOCK_BYTES = 16;
const WORD_BYTES = 4;

/** Bytes of one scan. */
export const SCAN_BYTES_MAX = PAGE_BYTES;

/** Each byte may be a delimiter, and each delimiter may end a record. */
const LAYOUT = {
  bytes: 0,
  delimiters: SCAN_BYTES_MAX,
  records: SCAN_BYTES_MAX * (1 + WORD_BYTES),
  /** The end of the table of records. */
  end: SCAN_BYTES_MAX * (1 + 2 * WORD_BYTES),
} as const;
const MEMORY_PAGES = LAYOUT.end / PAGE_BYTES + 1;
const DELIMITERS_INDEX = LAYOUT.delimiters / WORD_BYTES;
const RECORDS_INDEX = LAYOUT.records / WORD_BYTES;
const END_INDEX = LAYOUT.end / WORD_BYTES;

/** The bytes to find. */
export interface Delimiters {
  readonly field: number;
  readonly record: number;
  /** Ends the scan at the beginning of a field; -1 for none. */
  readonly quote: number;
}

/**
 * The delimiters of records without quoted fields. `words` holds the positions of delimiters, counted from the first byte of
 * the scan: those of record `n` lie between `endOf(n - 1)` and `endOf(n)`, and the last of them ends the record.
 */
export class DelimiterScan {
  readonly words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #run: (size: number) => void;
  /** Whole records of the latest scan. */
  count = 0;

  constructor({ field, record, quote }: Delimiters) {
    const memory = new WebAssembly.Memory({
      initial: MEMORY_PAGES,
      maximum: MEMORY_PAGES,
      shared: true,
    });
    this.#bytes = new Uint8Array(memory.buffer);
    this.words = new Int32Array(memory.buffer);
    module ??= new WebAssembly.Module(encodeModule([buildScan()], MEMORY_PAGES));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    const functions = exports as unknown as Functions;
    const [quoteByte, quoteMask] = quote < 0 ? [field, 0] : [quote, -1];
    this.#run = (size) => functions.scan(size, field, record, quoteByte, quoteMask);
  }

  /** Scans bytes, which begin with a record, up to the first quoted field; at most `SCAN_BYTES_MAX`. */
  scan(bytes: Uint8Array, start: number): void {
    const size = Math.min(bytes.length - start, SCAN_BYTES_MAX) & -BLOCK_BYTES;
    this.count = 0;
    if (size === 0) return;
    this.#bytes.set(bytes.subarray(start, start + size), LAYOUT.bytes);
    this.#run(size);
    this.count = this.words[END_INDEX]! / WORD_BYTES - RECORDS_INDEX;
  }

  /** The index behind the delimiters of a record in `words`; `n` may be -1. */
  endOf(n: number): number {
    return n < 0 ? DELIMITERS_INDEX : this.words[RECORDS_INDEX + n]! / WORD_BYTES;
  }
}

interface Functions {
  /** `quoteMask` is 0 if there are no quotes, otherwise -1. */
  scan(size: number, field: number, record: number, quote: number, quoteMask: number): void;
}

// Compiled at the first question about CSV.
let module: WebAssembly.Module | undefined;

type Names = Readonly<
  Record<
    "end" | "at" | "next" | "records" | "fieldStart" | "marks" | "recordMarks" | "quoteMarks",
    Local
  >
>;

function buildScan(): FunctionBuilder {
  const build = new FunctionBuilder("scan");
  const [end, field, record, quote, quoteMask] = [0, 1, 2, 3, 4].map(() => build.parameter("i32"));
  const integer = (): Local => build.local("i32");
  const names: Names = {
    end: end!,
    at: integer(),
    next: integer(),
    records: integer(),
    fieldStart: integer(),
    marks: integer(),
    recordMarks: integer(),
    quoteMarks: integer(),
  };
  const [bytes, fields, ends, quotes] = [0, 1, 2, 3].map(() => build.local("v128"));
  const { at, next, records, marks, recordMarks, quoteMarks } = names;
  const find = (lanes: Local) => v128.bitmask8(v128.equal8(get(bytes!), get(lanes)));
  build.emit(
    set(fields!, v128.splat8(get(field!))),
    set(ends!, v128.splat8(get(record!))),
    set(quotes!, v128.splat8(get(quote!))),
    set(next, i32.const(LAYOUT.delimiters)),
    set(records, i32.const(LAYOUT.records)),
  );
  build.repeatWhile(i32.lessU(get(at), get(end!)), () => {
    build.emit(
      set(bytes!, v128.load(get(at))),
      set(recordMarks, find(ends!)),
      set(quoteMarks, i32.and(find(quotes!), get(quoteMask!))),
      set(marks, i32.or(find(fields!), i32.or(get(recordMarks), get(quoteMarks)))),
    );
    build.emitIf(get(marks), () => emitMarks(build, names));
    build.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  build.emit(i32.store(i32.const(LAYOUT.end), get(records)));
  return build;
}

// Notes the delimiters of a block.
function emitMarks(build: FunctionBuilder, names: Names): void {
  const { end, at, next, records, fieldStart, marks, recordMarks, quoteMarks } = names;
  const low = build.local("i32");
  const position = build.local("i32");
  build.repeatWhile(get(marks), () => {
    build.emit(
      set(low, i32.and(get(marks), i32.sub(i32.const(0), get(marks)))),
      set(position, i32.add(get(at), i32.trailingZeros(get(marks)))),
      set(marks, i32.and(get(marks), i32.sub(get(marks), i32.const(1)))),
    );
    build.emitIf(
      i32.and(get(quoteMarks), get(low)),
      () =>
        // A quote amid a field is a usual character. Otherwise both loops end.
        build.emitIf(i32.equal(get(position), get(fieldStart)), () =>
          build.emit(set(marks, i32.const(0)), set(end, i32.const(0))),
        ),
      () => {
        build.emit(
          i32.store(get(next), get(position)),
          set(next, i32.add(get(next), i32.const(WORD_BYTES))),
          set(fieldStart, i32.add(get(position), i32.const(1))),
        );
        build.emitIf(i32.and(get(recordMarks), get(low)), () =>
          build.emit(
            i32.store(get(records), get(next)),
            set(records, i32.add(get(records), i32.const(WORD_BYTES))),
          ),
        );
      },
    );
  });
}
