// WebAssembly for scanning vectors: scalar products of one query with rows of 8-bit integers, 16 numbers at a time.
import { encodeModule, FunctionBuilder, get, i32, set, v128 } from "../hash/assembler.ts";

/** Numbers of a row are filled up with zeros to a multiple of this. */
export const LANE_NUMBERS = 16;
const ROW_STEP = LANE_NUMBERS;
const QUERY_STEP = 2 * LANE_NUMBERS;

/** The exports of the module. All arguments are addresses or counts. */
export interface VectorFunctions {
  /**
   * Writes the scalar product of the query (16-bit integers at `query`) with each of `rows` rows (8-bit integers at `row`, of
   * `steps` times 16 numbers, one after the other) as four 32-bit partial sums to `out`.
   */
  multiply(query: number, row: number, steps: number, rows: number, out: number): void;
}

/** Builds the module over a memory of `memoryPages` pages. */
export function buildVectorModule(memoryPages: number): Uint8Array<ArrayBuffer> {
  const build = new FunctionBuilder("multiply");
  const query = build.parameter("i32");
  const row = build.parameter("i32");
  const steps = build.parameter("i32");
  const rows = build.parameter("i32");
  const out = build.parameter("i32");
  const at = build.local("i32");
  const left = build.local("i32");
  const numbers = build.local("v128");
  const sum = build.local("v128");
  build.repeatWhile(get(rows), () => {
    build.emit(set(at, get(query)), set(left, get(steps)), set(sum, v128.xor(get(sum), get(sum))));
    build.repeatWhile(get(left), () => {
      build.emit(
        set(numbers, v128.load(get(row))),
        set(
          sum,
          v128.add(
            get(sum),
            v128.add(
              v128.dot16(v128.extendLow8(get(numbers)), v128.load(get(at))),
              v128.dot16(v128.extendHigh8(get(numbers)), v128.load(get(at), ROW_STEP)),
            ),
          ),
        ),
        set(row, i32.add(get(row), i32.const(ROW_STEP))),
        set(at, i32.add(get(at), i32.const(QUERY_STEP))),
        set(left, i32.sub(get(left), i32.const(1))),
      );
    });
    build.emit(
      v128.store(get(out), get(sum)),
      set(out, i32.add(get(out), i32.const(16))),
      set(rows, i32.sub(get(rows), i32.const(1))),
    );
  });
  return encodeModule([build], memoryPages);
}
