// WebAssembly that marks the delimiters of CSV, of one byte each.
import { FunctionBuilder, get, i32, type Local, set, v128 } from "../../hash/assembler.ts";
import { append, BLOCK_BYTES, compileScan, LAYOUT, ScanAhead } from "./scan-ahead.ts";

/** The bytes to find. */
export interface Delimiters {
  readonly field: number;
  readonly record: number;
  /** Ends a scan at the beginning of a field; -1 for none. */
  readonly quote: number;
}

let module: WebAssembly.Module | undefined;

/** Finds records without quoted fields. */
export function scanCsv({ field, record, quote }: Delimiters): ScanAhead {
  return new ScanAhead(compile, quote < 0 ? [field, record, field, 0] : [field, record, quote, -1]);
}

function compile(): WebAssembly.Module {
  return (module ??= compileScan(buildScan()));
}

type Names = Readonly<
  Record<
    "end" | "at" | "marks" | "records" | "fieldStart" | "found" | "recordsFound" | "quotesFound",
    Local
  >
>;

// scan(size, field, record, quote, quoteMask): the mask is 0 if there are no quotes, otherwise -1.
function buildScan(): FunctionBuilder {
  const build = new FunctionBuilder("scan");
  const [end, field, record, quote, quoteMask] = [0, 1, 2, 3, 4].map(() => build.parameter("i32"));
  const integer = (): Local => build.local("i32");
  const names: Names = {
    end: end!,
    at: integer(),
    marks: integer(),
    records: integer(),
    fieldStart: integer(),
    found: integer(),
    recordsFound: integer(),
    quotesFound: integer(),
  };
  const [bytes, fields, ends, quotes] = [0, 1, 2, 3].map(() => build.local("v128"));
  const { at, marks, records, found, recordsFound, quotesFound } = names;
  const find = (lanes: Local) => v128.bitmask8(v128.equal8(get(bytes!), get(lanes)));
  build.emit(
    set(fields!, v128.splat8(get(field!))),
    set(ends!, v128.splat8(get(record!))),
    set(quotes!, v128.splat8(get(quote!))),
    set(marks, i32.const(LAYOUT.marks)),
    set(records, i32.const(LAYOUT.records)),
  );
  build.repeatWhile(i32.lessU(get(at), get(end!)), () => {
    build.emit(
      set(bytes!, v128.load(get(at))),
      set(recordsFound, find(ends!)),
      set(quotesFound, i32.and(find(quotes!), get(quoteMask!))),
      set(found, i32.or(find(fields!), i32.or(get(recordsFound), get(quotesFound)))),
    );
    build.emitIf(get(found), () => emitMarks(build, names));
    build.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  build.emit(i32.store(i32.const(LAYOUT.end), get(records)));
  return build;
}

// Adds the delimiters of a block to the tables.
function emitMarks(build: FunctionBuilder, names: Names): void {
  const { end, at, marks, records, fieldStart, found, recordsFound, quotesFound } = names;
  const lowest = build.local("i32");
  const position = build.local("i32");
  build.repeatWhile(get(found), () => {
    build.emit(
      set(lowest, i32.and(get(found), i32.sub(i32.const(0), get(found)))),
      set(position, i32.add(get(at), i32.trailingZeros(get(found)))),
      set(found, i32.xor(get(found), get(lowest))),
    );
    build.emitIf(
      i32.and(get(quotesFound), get(lowest)),
      () =>
        // A quote amid a field is a usual character. Otherwise both loops end.
        build.emitIf(i32.equal(get(position), get(fieldStart)), () =>
          build.emit(set(found, i32.const(0)), set(end, i32.const(0))),
        ),
      () => {
        build.emit(
          append(marks, get(position)),
          set(fieldStart, i32.add(get(position), i32.const(1))),
        );
        build.emitIf(i32.and(get(recordsFound), get(lowest)), () =>
          build.emit(append(records, get(marks))),
        );
      },
    );
  });
}
