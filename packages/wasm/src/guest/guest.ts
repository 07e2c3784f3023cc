// A compiled module in one thread, with its instances.
import { GuestError } from "../errors.ts";
import { type GuestAbi, WASI_MODULE } from "../module/abi.ts";
import { GuestExit, StreamAborted, Wasi } from "./wasi.ts";

/** Exports of a `transform` guest. */
export interface TransformExports {
  memory: WebAssembly.Memory;
  alloc: (length: number) => number;
  transform: (at: number, length: number) => unknown;
  _initialize?: () => void;
}
interface CommandExports {
  memory: WebAssembly.Memory;
  _start: () => void;
}
/** Maximum memory of an instance that is kept for the next call. */
const KEPT_MEMORY_BYTES_MAX = 8 * 1024 * 1024;

interface Transformer {
  exports: TransformExports;
  wasi: Wasi;
  calls: number;
}

/** A compiled guest. Compiling validates the module. */
export class Guest {
  readonly #module: WebAssembly.Module;
  readonly #abi: GuestAbi;
  readonly #outputBytesMax: number;
  #transformer: Transformer | undefined;

  constructor(bytes: Uint8Array<ArrayBuffer>, abi: GuestAbi, outputBytesMax: number) {
    this.#abi = abi;
    this.#outputBytesMax = outputBytesMax;
    this.#module = compileGuest(bytes);
  }

  /** The result for `input`. Throws a GuestError. */
  call(input: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#abi === "command" ? this.#run(input) : this.#transform(input);
  }

  // A command cannot run twice: each call needs its own instance.
  #run(input: Uint8Array): Uint8Array<ArrayBuffer> {
    const wasi = new Wasi(this.#outputBytesMax);
    wasi.reset(input);
    runCommand(this.#module, wasi);
    return wasi.output;
  }

  // An instance is reused across calls. If a used one fails, its memory may just be full of leftovers of earlier calls:
  // the call is retried once on a new instance.
  #transform(input: Uint8Array): Uint8Array<ArrayBuffer> {
    const kept = this.#transformer;
    if (kept !== undefined && kept.calls > 0) {
      try {
        return this.#callTransform(kept, input);
      } catch {
        this.#transformer = undefined;
      }
    }
    try {
      this.#transformer ??= this.#createTransformer();
      return this.#callTransform(this.#transformer, input);
    } catch (error) {
      this.#transformer = undefined;
      throw error;
    }
  }

  #createTransformer(): Transformer {
    const wasi = new Wasi(this.#outputBytesMax);
    return { exports: createTransform(this.#module, wasi), wasi, calls: 0 };
  }

  #callTransform(transformer: Transformer, input: Uint8Array): Uint8Array<ArrayBuffer> {
    const { exports, wasi } = transformer;
    wasi.reset(new Uint8Array(0));
    const output = callTransform(exports, wasi, input, this.#outputBytesMax);
    transformer.calls++;
    if (exports.memory.buffer.byteLength > KEPT_MEMORY_BYTES_MAX) this.#transformer = undefined;
    return output;
  }
}

/** Compiles a module. Throws a GuestError if it does not validate. */
export function compileGuest(bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    throw new GuestError("invalid-module", `The module does not validate: ${describe(error)}`);
  }
}

/** Runs a command to its end in a new instance. Throws a GuestError unless it ends with 0. */
export function runCommand(module: WebAssembly.Module, wasi: Wasi): void {
  const exports = instantiate(module, wasi) as unknown as CommandExports;
  try {
    exports._start();
  } catch (error) {
    if (!(error instanceof GuestExit)) throw toGuestError(error, wasi);
    if (error.exitCode !== 0) throw toGuestError(error, wasi);
  }
}

/** Creates an initialized instance of a `transform` guest. Throws a GuestError. */
export function createTransform(module: WebAssembly.Module, wasi: Wasi): TransformExports {
  const exports = instantiate(module, wasi) as unknown as TransformExports;
  try {
    exports._initialize?.();
  } catch (error) {
    throw toGuestError(error, wasi);
  }
  return exports;
}

/** Calls a `transform` guest. Throws a GuestError. */
export function callTransform(
  exports: TransformExports,
  wasi: Wasi,
  input: Uint8Array,
  outputBytesMax: number,
): Uint8Array<ArrayBuffer> {
  let result: unknown;
  try {
    const at = exports.alloc(input.length) >>> 0;
    if (at + input.length > exports.memory.buffer.byteLength)
      throw new GuestError("invalid-result", "`alloc` returned an address outside the memory.");
    new Uint8Array(exports.memory.buffer).set(input, at);
    result = exports.transform(at, input.length);
  } catch (error) {
    throw toGuestError(error, wasi);
  }
  return readResult(exports.memory, result, outputBytesMax);
}

function readResult(
  memory: WebAssembly.Memory,
  result: unknown,
  outputBytesMax: number,
): Uint8Array<ArrayBuffer> {
  if (typeof result !== "bigint")
    throw new GuestError("invalid-result", "`transform` did not return an i64.");
  const packed = BigInt.asUintN(64, result);
  const at = Number(packed >> 32n);
  const length = Number(packed & 0xffff_ffffn);
  if (length > outputBytesMax)
    throw new GuestError(
      "output-too-large",
      `The guest returned ${length} bytes; the limit is ${outputBytesMax}.`,
    );
  if (at + length > memory.buffer.byteLength)
    throw new GuestError("invalid-result", "`transform` returned bytes outside the memory.");
  return new Uint8Array(memory.buffer, at, length).slice();
}

function instantiate(module: WebAssembly.Module, wasi: Wasi): WebAssembly.Exports {
  try {
    const imports = { [WASI_MODULE]: wasi.createImports() };
    const { exports } = new WebAssembly.Instance(module, imports);
    wasi.bind(exports["memory"] as WebAssembly.Memory);
    return exports;
  } catch (error) {
    if (error instanceof WebAssembly.LinkError)
      throw new GuestError("unsupported-module", `The module does not link: ${error.message}`);
    throw toGuestError(error, wasi);
  }
}

function toGuestError(error: unknown, wasi: Wasi): Error {
  if (error instanceof GuestError) return error;
  // A run on streams was aborted; its cause is known elsewhere.
  if (error instanceof StreamAborted) return error;
  if (error instanceof GuestExit)
    return new GuestError(
      "exited",
      `The guest ended with exit code ${error.exitCode}${quoteReason(wasi)}.`,
    );
  return new GuestError("trapped", `The guest trapped: ${describe(error)}${quoteReason(wasi)}.`);
}

function quoteReason(wasi: Wasi): string {
  return wasi.errorText === "" ? "" : ` (stderr: ${wasi.errorText})`;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
