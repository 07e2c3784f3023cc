// WASI preview 1 with only the standard streams: no files, sockets or arguments. The environment is that of the host's choice.
// (WebAssembly/WASI, legacy/preview1/docs.md)
import { randomFillSync } from "node:crypto";
import { GuestError } from "../errors.ts";
import { WASI_FUNCTIONS } from "../module/abi.ts";

// Error numbers of preview 1 (`errno`).
const SUCCESS = 0;
const BAD_FILE = 8;
const INVALID = 28;
const NO_SYSTEM_CALL = 52;
const SEEK_ON_STREAM = 70;
const CHARACTER_DEVICE = 2;
const RIGHT_READ = 2n;
const RIGHT_WRITE = 64n;
const STANDARD_STREAMS = 3;
/** Maximum bytes of standard error that are kept for error messages. */
const ERROR_TEXT_MAX = 1024;
/** Maximum bytes per `randomFillSync` call. */
const RANDOM_BYTES_MAX = 65_536;
/** Sizes of `filestat`, `subscription` and `event`. */
const FILE_STATUS_BYTES = 64;
const SUBSCRIPTION_BYTES = 48;
const EVENT_BYTES = 32;
const REALTIME = 0;
/** Type of a subscription and its event; 1 and 2 are reading and writing. */
const CLOCK_EVENT = 0;
const READ_EVENT = 1;
const ABSOLUTE_TIME = 1;

/** Thrown through the guest to end it; does not leave this package. */
export class GuestExit extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Thrown by streams that were aborted; ends the guest. Does not leave this package. */
export class StreamAborted extends Error {
  override readonly name = "StreamAborted";
}

/** Replaces the standard streams and counts the work of the host. */
export interface WasiHooks {
  /** Receives what the guest writes to both streams, instead of keeping it. The bytes are valid only during the call. */
  onText(bytes: Uint8Array): void;
  /** Called before work of this many units; ends the guest by throwing. */
  charge(units: number): void;
}

/** Standard input and output that are not in memory. */
export interface WasiStreams {
  /** Fills the beginning of `target`, and waits for at least one byte; 0 is the end. */
  read(target: Uint8Array): number;
  /** Writes all bytes, which are valid only during the call. */
  write(bytes: Uint8Array): void;
}

/** Parts of a guest that runs on streams. */
export interface StreamedWasi {
  readonly streams: WasiStreams;
  /** Variables, as `NAME=value`. */
  readonly environment: readonly string[];
  /** Bytes of standard error that are kept. */
  readonly errorBytesMax: number;
}

/** A subscription of `poll_oneoff`. */
interface Subscription {
  readonly userData: bigint;
  readonly type: number;
  readonly waitNs: bigint;
  readonly error: number;
}

/** Units of one vector of `fd_read` and `fd_write`, and of a call. */
const VECTOR_UNITS = 64;

/** The WASI host of one guest instance. `memory` is bound after instantiation. */
export class Wasi {
  readonly #outputBytesMax: number;
  readonly #hooks: WasiHooks | undefined;
  readonly #streamed: StreamedWasi | undefined;
  readonly #environment: readonly Uint8Array[];
  #memory: WebAssembly.Memory | undefined;
  #input: Uint8Array = new Uint8Array(0);
  #inputAt = 0;
  #output: Uint8Array[] = [];
  #outputBytes = 0;
  #errorText: Uint8Array[] = [];
  #errorBytes = 0;
  /** Time that the guest has slept, in nanoseconds. */
  #sleptNs = 0n;

  constructor(outputBytesMax: number, hooks?: WasiHooks, streamed?: StreamedWasi) {
    this.#outputBytesMax = outputBytesMax;
    this.#hooks = hooks;
    this.#streamed = streamed;
    const encoder = new TextEncoder();
    this.#environment = (streamed?.environment ?? []).map((one) => encoder.encode(`${one}\0`));
  }

  bind(memory: WebAssembly.Memory): void {
    this.#memory = memory;
  }

  /** Sets the standard input and clears the output of the previous call. */
  reset(input: Uint8Array): void {
    this.#input = input;
    this.#inputAt = 0;
    this.#output = [];
    this.#outputBytes = 0;
    this.#errorText = [];
    this.#errorBytes = 0;
  }

  /** The standard output of the guest. */
  get output(): Uint8Array<ArrayBuffer> {
    return join(this.#output, this.#outputBytes);
  }

  /** The beginning of the standard error of the guest as text. */
  get errorText(): string {
    return new TextDecoder().decode(join(this.#errorText, this.#errorBytes)).trim();
  }

  /** The imports of module `wasi_snapshot_preview1`. */
  createImports(): Record<string, (...args: never[]) => number> {
    const imports: Record<string, (...args: never[]) => number> = {};
    for (const name of WASI_FUNCTIONS) imports[name] = () => NO_SYSTEM_CALL;
    // Without preopened folders, paths cannot be resolved.
    for (const name of WASI_FUNCTIONS)
      if (name.startsWith("path_") || name.startsWith("fd_")) imports[name] = () => BAD_FILE;
    return Object.assign(imports, {
      args_sizes_get: (count: number, bytes: number) => this.#setSizes(count, bytes),
      args_get: () => SUCCESS,
      environ_sizes_get: (count: number, bytes: number) =>
        this.#setSizes(count, bytes, this.#environment),
      environ_get: (pointers: number, at: number) => this.#placeEnvironment(pointers, at),
      clock_res_get: (_clock: number, at: number) => this.#setUint64(at, 1_000_000n),
      clock_time_get: (clock: number, _precision: bigint, at: number) =>
        this.#setUint64(at, this.#readClock(clock)),
      random_get: (at: number, bytes: number) => this.#fillRandom(at, bytes),
      sched_yield: () => SUCCESS,
      poll_oneoff: (from: number, to: number, count: number, at: number) =>
        this.#poll(from >>> 0, to >>> 0, count >>> 0, at >>> 0),
      proc_exit: (code: number) => {
        throw new GuestExit(code);
      },
      fd_fdstat_get: (file: number, at: number) => this.#describe(file, at),
      fd_filestat_get: (file: number, at: number) => this.#describeFile(file, at),
      fd_fdstat_set_flags: (file: number) => (isStream(file) ? SUCCESS : BAD_FILE),
      fd_close: (file: number) => (isStream(file) ? SUCCESS : BAD_FILE),
      fd_seek: (file: number) => (isStream(file) ? SEEK_ON_STREAM : BAD_FILE),
      fd_tell: (file: number) => (isStream(file) ? SEEK_ON_STREAM : BAD_FILE),
      fd_read: (file: number, vectors: number, count: number, at: number) =>
        this.#read(file, vectors, count, at),
      fd_write: (file: number, vectors: number, count: number, at: number) =>
        this.#write(file, vectors, count, at),
    });
  }

  // Creates a new view each time, because growing the memory detaches the old buffer.
  get #view(): DataView {
    if (this.#memory === undefined) throw new GuestExit(INVALID);
    return new DataView(this.#memory.buffer);
  }

  #setSizes(count: number, bytes: number, texts: readonly Uint8Array[] = []): number {
    const view = this.#view;
    view.setUint32(count >>> 0, texts.length, true);
    view.setUint32(
      bytes >>> 0,
      texts.reduce((sum, { length }) => sum + length, 0),
      true,
    );
    return SUCCESS;
  }

  #placeEnvironment(pointers: number, at: number): number {
    const view = this.#view;
    const memory = new Uint8Array(view.buffer);
    let next = at >>> 0;
    for (const [index, text] of this.#environment.entries()) {
      view.setUint32((pointers >>> 0) + index * 4, next, true);
      memory.set(text, next);
      next += text.length;
    }
    return SUCCESS;
  }

  #setUint64(at: number, value: bigint): number {
    this.#view.setBigUint64(at >>> 0, value, true);
    return SUCCESS;
  }

  #fillRandom(at: number, bytes: number): number {
    const { buffer } = this.#view;
    const end = (at >>> 0) + (bytes >>> 0);
    if (end > buffer.byteLength) return INVALID;
    this.#hooks?.charge(bytes >>> 0);
    for (let from = at >>> 0; from < end; from += RANDOM_BYTES_MAX)
      randomFillSync(new Uint8Array(buffer, from, Math.min(RANDOM_BYTES_MAX, end - from)));
    return SUCCESS;
  }

  #describe(file: number, at: number): number {
    if (!isStream(file)) return BAD_FILE;
    const view = this.#view;
    view.setUint8(at >>> 0, CHARACTER_DEVICE);
    view.setUint16((at >>> 0) + 2, 0, true);
    view.setBigUint64((at >>> 0) + 8, file === 0 ? RIGHT_READ : RIGHT_WRITE, true);
    view.setBigUint64((at >>> 0) + 16, 0n, true);
    return SUCCESS;
  }

  #describeFile(file: number, at: number): number {
    if (!isStream(file)) return BAD_FILE;
    const status = new Uint8Array(this.#view.buffer, at >>> 0, FILE_STATUS_BYTES);
    status.fill(0);
    status[16] = CHARACTER_DEVICE;
    return SUCCESS;
  }

  /**
   * `poll_oneoff`: a guest that waits for time goes on at once, because it would hold up its thread; its monotonic clock has
   * advanced by as much. Standard streams are always ready.
   */
  #poll(from: number, to: number, count: number, at: number): number {
    if (count === 0) return INVALID;
    this.#hooks?.charge(count * VECTOR_UNITS);
    const view = this.#view;
    const entries = Array.from({ length: count }, (_, index) =>
      this.#readSubscription(view, from + index * SUBSCRIPTION_BYTES),
    );
    let earliestNs = entries[0]!.waitNs;
    for (const { waitNs } of entries) if (waitNs < earliestNs) earliestNs = waitNs;
    const ready = entries.filter(({ waitNs }) => waitNs <= earliestNs);
    if (earliestNs > 0n) this.#sleptNs += earliestNs;
    for (const [index, { userData, type, error }] of ready.entries()) {
      const event = to + index * EVENT_BYTES;
      new Uint8Array(view.buffer, event, EVENT_BYTES).fill(0);
      view.setBigUint64(event, userData, true);
      view.setUint16(event + 8, error, true);
      view.setUint8(event + 10, type);
      if (type === READ_EVENT)
        view.setBigUint64(event + 16, BigInt(this.#input.length - this.#inputAt), true);
    }
    view.setUint32(at, ready.length, true);
    return SUCCESS;
  }

  /** `waitNs` is 0 or less for what is ready, or will never be. */
  #readSubscription(view: DataView, at: number): Subscription {
    const userData = view.getBigUint64(at, true);
    const type = view.getUint8(at + 8);
    if (type !== CLOCK_EVENT) {
      const isKnown = isStream(view.getInt32(at + 16, true));
      return { userData, type, waitNs: 0n, error: isKnown ? SUCCESS : BAD_FILE };
    }
    const clock = view.getUint32(at + 16, true);
    const timeoutNs = view.getBigUint64(at + 24, true);
    const isAbsolute = (view.getUint16(at + 40, true) & ABSOLUTE_TIME) !== 0;
    const waitNs = isAbsolute ? timeoutNs - this.#readClock(clock) : timeoutNs;
    return { userData, type, waitNs, error: SUCCESS };
  }

  #readClock(clock: number): bigint {
    if (clock === REALTIME) return BigInt(Date.now()) * 1_000_000n;
    const nowNs = process.hrtime.bigint() + this.#sleptNs;
    // Guests of strangers get no clock that is precise enough to watch their neighbours.
    return this.#streamed === undefined ? nowNs : nowNs - (nowNs % 1_000_000n);
  }

  #read(file: number, vectors: number, count: number, at: number): number {
    if (file !== 0) return BAD_FILE;
    this.#hooks?.charge(count * VECTOR_UNITS);
    const view = this.#view;
    let total = 0;
    if (this.#streamed !== undefined) {
      // The first vector with room; a guest that wants more reads again.
      for (let index = 0; index < count && total === 0; index++) {
        const target = readVector(view, vectors, index);
        if (target.length > 0) total = this.#streamed.streams.read(target);
        if (target.length > 0 && total === 0) break;
      }
      view.setUint32(at >>> 0, total, true);
      return SUCCESS;
    }
    for (let index = 0; index < count && this.#inputAt < this.#input.length; index++) {
      const target = readVector(view, vectors, index);
      const bytes = this.#input.subarray(this.#inputAt, this.#inputAt + target.length);
      target.set(bytes);
      this.#inputAt += bytes.length;
      total += bytes.length;
    }
    view.setUint32(at >>> 0, total, true);
    return SUCCESS;
  }

  #write(file: number, vectors: number, count: number, at: number): number {
    if (file !== 1 && file !== 2) return BAD_FILE;
    this.#hooks?.charge(count * VECTOR_UNITS);
    const view = this.#view;
    let total = 0;
    for (let index = 0; index < count; index++) {
      const bytes = readVector(view, vectors, index);
      if (this.#hooks !== undefined) this.#passOn(bytes, this.#hooks);
      else if (file === 1 && this.#streamed !== undefined) this.#streamed.streams.write(bytes);
      else if (file === 1) this.#keepOutput(bytes);
      else this.#keepError(bytes);
      total += bytes.length;
    }
    view.setUint32(at >>> 0, total, true);
    return SUCCESS;
  }

  #passOn(bytes: Uint8Array, hooks: WasiHooks): void {
    hooks.charge(bytes.length / 16);
    hooks.onText(bytes);
  }

  #keepOutput(bytes: Uint8Array): void {
    this.#outputBytes += bytes.length;
    if (this.#outputBytes > this.#outputBytesMax)
      throw new GuestError(
        "output-too-large",
        `The guest wrote more than ${this.#outputBytesMax} bytes.`,
      );
    if (bytes.length > 0) this.#output.push(bytes.slice());
  }

  #keepError(bytes: Uint8Array): void {
    const bytesMax = this.#streamed?.errorBytesMax ?? ERROR_TEXT_MAX;
    const kept = bytes.slice(0, bytesMax - this.#errorBytes);
    this.#errorBytes += kept.length;
    if (kept.length > 0) this.#errorText.push(kept);
  }
}

function isStream(file: number): boolean {
  return file >= 0 && file < STANDARD_STREAMS;
}

function readVector(view: DataView, vectors: number, index: number): Uint8Array {
  const at = (vectors >>> 0) + index * 8;
  // Both throw a RangeError for addresses outside the memory, which ends the guest like a trap.
  return new Uint8Array(view.buffer, view.getUint32(at, true), view.getUint32(at + 4, true));
}

function join(parts: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
