// WebAssembly that marks the ends of the fields of CSV, whose delimiters have one byte each.
import {
  type Code,
  FunctionBuilder,
  get,
  i32,
  type Local,
  set,
  v128,
} from "../../hash/assembler.ts";
import {
  append,
  BLOCK_BYTES,
  compileScan,
  LAYOUT,
  POSITION_MASK,
  ScanAhead,
} from "./scan-ahead.ts";

/** The bytes that matter; -1 for those that do not exist. */
export interface CsvBytes {
  readonly field: number;
  readonly record: number;
  readonly quote: number;
  /** Begins a comment, at the start of a record. */
  readonly comment: number;
  /** May precede a record delimiter. */
  readonly carriageReturn: number;
  /** False if a quote at the start of a field ends the scan, because it is escaped by another byte. */
  readonly readsQuotes: boolean;
  /** True if quoted fields may contain record delimiters. */
  readonly quotesRecords: boolean;
}

/** Set in the mark of the delimiter behind a quoted field. */
const QUOTED = POSITION_MASK + 1;
const QUOTED_SHIFT = Math.log2(QUOTED);
/** Set, too, if the field contains pairs of quotes. */
const PAIRED = QUOTED * 2;

/** The number of quotes on each side of the field that a mark ends. */
export function countQuotes(mark: number): number {
  return (mark >>> QUOTED_SHIFT) & 1;
}

/** True if the field that a mark ends contains pairs of quotes. */
export function hasPairs(mark: number): boolean {
  return (mark & PAIRED) !== 0;
}

let module: WebAssembly.Module | undefined;

/** Finds records. A record that is at fault ends the scan before it. */
export function scanCsv(bytes: CsvBytes): ScanAhead {
  const { field, record, quote, comment, carriageReturn, readsQuotes, quotesRecords } = bytes;
  return new ScanAhead(compile, [
    field,
    record,
    // No other byte is marked instead.
    quote < 0 ? field : quote,
    quote < 0 ? 0 : -1,
    comment,
    carriageReturn,
    Number(readsQuotes),
    Number(quotesRecords),
  ]);
}

function compile(): WebAssembly.Module {
  return (module ??= compileScan(buildScan()));
}

const PARAMETERS = [
  "end",
  "field",
  "record",
  "quote",
  "quoteMask",
  "comment",
  "carriageReturn",
  "readsQuotes",
  "quotesRecords",
] as const;
const LOCALS = [
  "at",
  "marks",
  "records",
  "fieldStart",
  "found",
  "recordsFound",
  "quotesFound",
  "lowest",
  "position",
  "next",
  /** `QUOTED` and `PAIRED` of the current field. */
  "kind",
  "isOpen",
  "isComment",
  /** The position of a quote that belongs to the one before it. */
  "paired",
] as const;
type Names = Readonly<Record<(typeof PARAMETERS)[number] | (typeof LOCALS)[number], Local>>;

// scan(size, …) with the parameters above; `quoteMask` is 0 if there are no quotes, otherwise -1.
function buildScan(): FunctionBuilder {
  const build = new FunctionBuilder("scan");
  const names = Object.fromEntries([
    ...PARAMETERS.map((name) => [name, build.parameter("i32")]),
    ...LOCALS.map((name) => [name, build.local("i32")]),
  ]) as Names;
  const [bytes, fields, ends, quotes] = [0, 1, 2, 3].map(() => build.local("v128"));
  const { end, at, marks, records, found, recordsFound, quotesFound, quoteMask } = names;
  const find = (lanes: Local): Code => v128.bitmask8(v128.equal8(get(bytes!), get(lanes)));
  build.emit(
    set(fields!, v128.splat8(get(names.field))),
    set(ends!, v128.splat8(get(names.record))),
    set(quotes!, v128.splat8(get(names.quote))),
    set(marks, i32.const(LAYOUT.marks)),
    set(records, i32.const(LAYOUT.records)),
    set(names.paired, i32.const(-1)),
    set(names.isComment, i32.equal(i32.load8(i32.const(0)), get(names.comment))),
  );
  build.repeatWhile(i32.lessU(get(at), get(end)), () => {
    build.emit(
      set(bytes!, v128.load(get(at))),
      set(recordsFound, find(ends!)),
      set(quotesFound, i32.and(find(quotes!), get(quoteMask))),
      set(found, i32.or(find(fields!), i32.or(get(recordsFound), get(quotesFound)))),
    );
    build.emitIf(get(found), () => emitMarks(build, names));
    build.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  build.emit(i32.store(i32.const(LAYOUT.end), get(records)));
  return build;
}

// Reads the delimiters and quotes of a block.
function emitMarks(build: FunctionBuilder, names: Names): void {
  const { at, found, quotesFound, lowest, position, next } = names;
  build.repeatWhile(get(found), () => {
    build.emit(
      set(lowest, i32.and(get(found), i32.sub(i32.const(0), get(found)))),
      set(position, i32.add(get(at), i32.trailingZeros(get(found)))),
      set(next, i32.add(get(position), i32.const(1))),
      set(found, i32.xor(get(found), get(lowest))),
    );
    build.emitIf(
      i32.and(get(quotesFound), get(lowest)),
      () => emitQuote(build, names),
      () => emitDelimiter(build, names),
    );
  });
}

function emitDelimiter(build: FunctionBuilder, names: Names): void {
  const { marks, records, fieldStart, recordsFound, lowest, position, next, kind } = names;
  const isRecord = i32.and(get(recordsFound), get(lowest));
  build.emitIf(
    get(names.isOpen),
    () =>
      build.emitIf(isRecord, () =>
        build.emitIf(i32.isZero(get(names.quotesRecords)), () => emitStop(build, names)),
      ),
    () => {
      build.emit(
        append(marks, i32.or(get(position), get(kind))),
        set(fieldStart, get(next)),
        set(kind, i32.const(0)),
      );
      build.emitIf(isRecord, () =>
        build.emit(
          append(records, get(marks)),
          set(names.isComment, i32.equal(i32.load8(get(next)), get(names.comment))),
        ),
      );
    },
  );
}

// A quote opens the field that begins with it. Amid another field, or a comment, it is a usual character.
function emitQuote(build: FunctionBuilder, names: Names): void {
  const { fieldStart, position, kind, isOpen } = names;
  const opens = i32.equal(get(position), get(fieldStart));
  build.emitIf(
    get(isOpen),
    () => emitInnerQuote(build, names),
    () =>
      build.emitIf(i32.and(opens, i32.isZero(get(names.isComment))), () =>
        build.emitIf(
          get(names.readsQuotes),
          () => build.emit(set(isOpen, i32.const(1)), set(kind, i32.const(QUOTED))),
          () => emitStop(build, names),
        ),
      ),
  );
}

// The second one of a pair, the first one, or the end of the field. The bytes behind a scan are not known, but no mark depends
// on them.
function emitInnerQuote(build: FunctionBuilder, names: Names): void {
  const { quote, position, next, kind, isOpen, paired } = names;
  const isPair = i32.equal(i32.load8(get(next)), get(quote));
  build.emitIf(i32.isZero(i32.equal(get(position), get(paired))), () =>
    build.emitIf(
      isPair,
      () => build.emit(set(paired, get(next)), set(kind, i32.or(get(kind), i32.const(PAIRED)))),
      () => {
        build.emit(set(isOpen, i32.const(0)));
        build.emitIf(i32.isZero(endsField(names)), () => emitStop(build, names));
      },
    ),
  );
}

// True if the byte behind a closing quote is a delimiter, or a carriage return before one.
function endsField({ field, record, carriageReturn, next }: Names): Code {
  const byte = i32.load8(get(next));
  const isReturn = i32.and(
    i32.equal(byte, get(carriageReturn)),
    i32.equal(i32.load8(get(next), 1), get(record)),
  );
  return i32.or(i32.or(i32.equal(byte, get(field)), i32.equal(byte, get(record))), isReturn);
}

// Ends both loops.
function emitStop(build: FunctionBuilder, { found, end }: Names): void {
  build.emit(set(found, i32.const(0)), set(end, i32.const(0)));
}
