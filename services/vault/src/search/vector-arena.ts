// The memory of all matrices: blocks of one WebAssembly memory, whose untouched pages take no memory.
import { DIMENSION_MAX } from "../model/vector.ts";
import { buildVectorModule, LANE_NUMBERS, type VectorFunctions } from "./vector-kernel.ts";

const PAGE_BYTES = 65_536;
/** Of 32-bit numbers. */
const QUERY_BYTES = 4 * DIMENSION_MAX;
/** Rows of one call; each has four partial sums. */
const ROWS_PER_CALL = 2_048;
const OUT_BYTES = 16 * ROWS_PER_CALL;
const BLOCKS_AT = Math.ceil((QUERY_BYTES + OUT_BYTES) / PAGE_BYTES) * PAGE_BYTES;
/** WebAssembly addresses 4 GiB. */
const BYTES_MAX = 4 * 1024 ** 3 - PAGE_BYTES;

export class VectorArena {
  readonly blockBytes = 1024 * 1024;
  readonly #memory: WebAssembly.Memory<SharedArrayBuffer>;
  readonly #functions: VectorFunctions;
  readonly #free: number[] = [];
  readonly #blocks: number;
  #used = 0;

  constructor(bytes: number) {
    this.#blocks = Math.floor((Math.min(bytes, BYTES_MAX) - BLOCKS_AT) / this.blockBytes);
    const pages = (BLOCKS_AT + this.#blocks * this.blockBytes) / PAGE_BYTES;
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    const module = new WebAssembly.Module(buildVectorModule(pages));
    const instance = new WebAssembly.Instance(module, { env: { memory: this.#memory } });
    this.#functions = instance.exports as unknown as VectorFunctions;
  }

  /** A free block; `undefined` if there is none. */
  takeBlock(): number | undefined {
    const block = this.#free.pop();
    if (block !== undefined || this.#used === this.#blocks) return block;
    this.#used += 1;
    return this.#used - 1;
  }

  returnBlock(block: number): void {
    this.#free.push(block);
  }

  /** Address of a block. */
  locateBlock(block: number): number {
    return BLOCKS_AT + block * this.blockBytes;
  }

  /** Integers of a row. */
  viewIntegers(address: number, numbers: number): Int8Array {
    return new Int8Array(this.#memory.buffer, address, numbers);
  }

  /** Floating-point numbers of a row, or at address 0 of the query. */
  viewFloats(address: number, numbers: number): Float32Array {
    return new Float32Array(this.#memory.buffer, address, numbers);
  }

  /** Integers of the query. */
  viewIntegerQuery(numbers: number): Int16Array {
    return new Int16Array(this.#memory.buffer, 0, numbers);
  }

  /** Calls `use` with the scalar product of the query and each row at the start of a block; rows have `stride` integers. */
  multiplyIntegers(block: number, stride: number, rows: number, use: UseProduct): void {
    const sums = new Int32Array(this.#memory.buffer, QUERY_BYTES, 4 * ROWS_PER_CALL);
    this.#multiply("multiplyIntegers", sums, { block, stride, rows, rowBytes: stride }, use);
  }

  /** The same for floating-point numbers. */
  multiplyFloats(block: number, stride: number, rows: number, use: UseProduct): void {
    const sums = new Float32Array(this.#memory.buffer, QUERY_BYTES, 4 * ROWS_PER_CALL);
    this.#multiply("multiplyFloats", sums, { block, stride, rows, rowBytes: 4 * stride }, use);
  }

  #multiply(
    name: keyof VectorFunctions,
    sums: Int32Array | Float32Array,
    { block, stride, rows, rowBytes }: Record<"block" | "stride" | "rows" | "rowBytes", number>,
    use: UseProduct,
  ): void {
    const address = this.locateBlock(block);
    for (let first = 0; first < rows; first += ROWS_PER_CALL) {
      const count = Math.min(ROWS_PER_CALL, rows - first);
      const steps = stride / LANE_NUMBERS;
      this.#functions[name](0, address + first * rowBytes, steps, count, QUERY_BYTES);
      for (let row = 0; row < count; row += 1) {
        const at = 4 * row;
        use(first + row, sums[at]! + sums[at + 1]! + sums[at + 2]! + sums[at + 3]!);
      }
    }
  }
}

type UseProduct = (row: number, product: number) => void;
