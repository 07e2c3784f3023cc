// WebAssembly for scanning vectors: scalar products of one query with rows of 8-bit integers, 16 numbers at a time, or of 32-bit
// floating-point numbers.
import {
  type Code,
  encodeModule,
  FunctionBuilder,
  get,
  i32,
  type Local,
  set,
  v128,
} from "../hash/assembler.ts";

/** Numbers of a row are filled up with zeros to a multiple of this. */
export const LANE_NUMBERS = 16;
const INTEGER_ROW_STEP = LANE_NUMBERS;
const INTEGER_QUERY_STEP = 2 * LANE_NUMBERS;
const FLOAT_STEP = 4 * LANE_NUMBERS;
const VECTOR_BYTES = 16;

/** The exports of the module. All arguments are addresses or counts. */
export interface VectorFunctions {
  /**
   * Writes the scalar product of the query (16-bit integers at `query`) with each of `rows` rows (8-bit integers at `row`, of
   * `steps` times 16 numbers, one after the other) as four 32-bit partial sums to `out`.
   */
  multiplyIntegers(query: number, row: number, steps: number, rows: number, out: number): void;
  /** The same for 32-bit floating-point numbers, with sums of that type. */
  multiplyFloats(query: number, row: number, steps: number, rows: number, out: number): void;
}

/** Builds the module over a memory of `memoryPages` pages. */
export function buildVectorModule(memoryPages: number): Uint8Array<ArrayBuffer> {
  const integers = buildMultiply(
    "multiplyIntegers",
    { row: INTEGER_ROW_STEP, query: INTEGER_QUERY_STEP },
    ({ numbers, row, at, sum }) => [
      set(numbers, v128.load(get(row))),
      set(
        sum,
        v128.add(
          get(sum),
          v128.add(
            v128.dot16(v128.extendLow8(get(numbers)), v128.load(get(at))),
            v128.dot16(v128.extendHigh8(get(numbers)), v128.load(get(at), VECTOR_BYTES)),
          ),
        ),
      ),
    ],
  );
  const floats = buildMultiply(
    "multiplyFloats",
    { row: FLOAT_STEP, query: FLOAT_STEP },
    ({ row, at, sum }) =>
      [0, 1, 2, 3].map((lane) => {
        const offset = lane * VECTOR_BYTES;
        const product = v128.mulFloats(v128.load(get(row), offset), v128.load(get(at), offset));
        return set(sum, v128.addFloats(get(sum), product));
      }),
  );
  return encodeModule([integers, floats], memoryPages);
}

type Names = Readonly<Record<"row" | "at" | "numbers" | "sum", Local>>;

// `emitStep` adds the products of 16 numbers to the sum.
function buildMultiply(
  name: keyof VectorFunctions,
  bytes: { readonly row: number; readonly query: number },
  emitStep: (names: Names) => Code[],
): FunctionBuilder {
  const build = new FunctionBuilder(name);
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
        ...emitStep({ row, at, numbers, sum }),
        set(row, i32.add(get(row), i32.const(bytes.row))),
        set(at, i32.add(get(at), i32.const(bytes.query))),
        set(left, i32.sub(get(left), i32.const(1))),
      );
    });
    build.emit(
      v128.store(get(out), get(sum)),
      set(out, i32.add(get(out), i32.const(VECTOR_BYTES))),
      set(rows, i32.sub(get(rows), i32.const(1))),
    );
  });
  return build;
}
