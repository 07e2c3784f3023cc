// WebAssembly that marks what separates the values of JSON lines: quotes, and punctuation outside of strings.
import {
  type Code,
  FunctionBuilder,
  get,
  i32,
  type Local,
  set,
  v128,
} from "../../hash/assembler.ts";
import { append, BLOCK_BYTES, compileScan, LAYOUT, ScanAhead } from "./scan-ahead.ts";

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** The difference between brackets and braces. */
const CASE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;
const BLOCK_MASK = 0xffff;

let module: WebAssembly.Module | undefined;

/** Finds lines without escapes, and without control characters other than CR and LF. Strings end on their line. */
export function scanJsonLines(): ScanAhead {
  return new ScanAhead(compile, []);
}

function compile(): WebAssembly.Module {
  return (module ??= compileScan(buildScan()));
}

type Names = Readonly<
  Record<"bytes" | "quotes" | "inString" | "wasInString" | "lines" | "found" | "refused", Local>
>;

function buildScan(): FunctionBuilder {
  const build = new FunctionBuilder("scan");
  const end = build.parameter("i32");
  const integer = (): Local => build.local("i32");
  const [at, marks, records] = [integer(), integer(), integer()];
  const names: Names = {
    bytes: build.local("v128"),
    quotes: integer(),
    inString: integer(),
    wasInString: integer(),
    lines: integer(),
    found: integer(),
    refused: integer(),
  };
  const { bytes, lines, found, refused } = names;
  build.emit(set(marks, i32.const(LAYOUT.marks)), set(records, i32.const(LAYOUT.records)));
  build.repeatWhile(i32.lessU(get(at), get(end)), () => {
    build.emit(set(bytes, v128.load(get(at))));
    emitStrings(build, names);
    emitFound(build, names);
    // The scan ends.
    build.emitIf(get(refused), () => build.emit(set(found, i32.const(0)), set(end, i32.const(0))));
    build.emitIf(get(found), () => emitMarks(build, { at, marks, records, lines, found }));
    build.emit(set(at, i32.add(get(at), i32.const(BLOCK_BYTES))));
  });
  build.emit(i32.store(i32.const(LAYOUT.end), get(records)));
  return build;
}

// Finds the bytes of strings: the first quote is one of them, the last one is not.
function emitStrings(build: FunctionBuilder, names: Names): void {
  const { bytes, quotes, inString, wasInString } = names;
  build.emit(
    set(quotes, v128.bitmask8(are(bytes, QUOTE))),
    set(inString, get(quotes)),
    // A bit for an odd number of quotes up to it.
    ...[1, 2, 4, 8].map((bits) =>
      set(inString, i32.xor(get(inString), i32.shl(get(inString), i32.const(bits)))),
    ),
    set(inString, i32.and(i32.xor(get(inString), get(wasInString)), i32.const(BLOCK_MASK))),
    set(wasInString, i32.sub(i32.const(0), i32.shrU(get(inString), i32.const(BLOCK_BYTES - 1)))),
  );
}

// Finds the marks, and whatever needs a closer look.
function emitFound(build: FunctionBuilder, names: Names): void {
  const { bytes, quotes, inString, lines, found, refused } = names;
  const folded = v128.or(get(bytes), v128.splat8(i32.const(CASE_BIT)));
  const isBrace = (brace: number): Code => v128.equal8(folded, v128.splat8(i32.const(brace)));
  const isLineEnd = v128.or(are(bytes, LINE_FEED), are(bytes, CARRIAGE_RETURN));
  const isControl = v128.lessU8(get(bytes), v128.splat8(i32.const(SPACE)));
  const isPunctuation = [
    are(bytes, COMMA),
    are(bytes, COLON),
    isBrace(OPEN_BRACE),
    isBrace(CLOSE_BRACE),
  ].reduce((a, b) => v128.or(a, b));
  build.emit(
    set(lines, v128.bitmask8(are(bytes, LINE_FEED))),
    set(found, i32.or(v128.bitmask8(isPunctuation), get(lines))),
    set(found, i32.and(get(found), i32.xor(get(inString), i32.const(-1)))),
    set(found, i32.or(get(found), get(quotes))),
    set(refused, v128.bitmask8(v128.or(are(bytes, BACKSLASH), v128.andNot(isControl, isLineEnd)))),
    set(refused, i32.or(get(refused), i32.and(get(inString), v128.bitmask8(isLineEnd)))),
  );
}

// Adds the marks of a block to the tables.
function emitMarks(
  build: FunctionBuilder,
  names: Readonly<Record<"at" | "marks" | "records" | "lines" | "found", Local>>,
): void {
  const { at, marks, records, lines, found } = names;
  const lowest = build.local("i32");
  build.repeatWhile(get(found), () => {
    build.emit(
      set(lowest, i32.and(get(found), i32.sub(i32.const(0), get(found)))),
      append(marks, i32.add(get(at), i32.trailingZeros(get(found)))),
      set(found, i32.xor(get(found), get(lowest))),
    );
    build.emitIf(i32.and(get(lines), get(lowest)), () => build.emit(append(records, get(marks))));
  });
}

function are(bytes: Local, byte: number): Code {
  return v128.equal8(get(bytes), v128.splat8(i32.const(byte)));
}
