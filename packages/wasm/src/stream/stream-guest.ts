// Runs a guest on rings, in its thread.
import { GuestError } from "../errors.ts";
import { callTransform, createTransform, runCommand } from "../guest/guest.ts";
import { StreamAborted, Wasi, type WasiStreams } from "../guest/wasi.ts";
import { ByteRing } from "./byte-ring.ts";
import { GuestClock } from "./guest-clock.ts";
import type { FromStreamThread, StreamLimits, ToStreamThread } from "./messages.ts";

const ERROR_BYTES_MAX = 4_096;

type Run = Extract<ToStreamThread, { type: "run" }>;

/** Runs a guest to its end. Never throws. */
export function runOnRings(module: WebAssembly.Module, run: Run): FromStreamThread {
  const streams = new RingStreams(run);
  const { limits, environment } = run;
  const wasi = new Wasi(limits.wholeBytesMax, undefined, {
    streams,
    environment,
    errorBytesMax: ERROR_BYTES_MAX,
  });
  try {
    if (run.module.abi === "command") runCommand(module, wasi);
    else transform(module, wasi, streams, limits);
    streams.end();
    return { ok: true, stderr: wasi.errorText };
  } catch (error) {
    return describeFailure(error, wasi.errorText);
  } finally {
    streams.leave();
  }
}

function transform(
  module: WebAssembly.Module,
  wasi: Wasi,
  streams: RingStreams,
  { wholeBytesMax }: StreamLimits,
): void {
  const exports = createTransform(module, wasi);
  const input = streams.readAll(wholeBytesMax);
  streams.write(callTransform(exports, wasi, input, wholeBytesMax));
}

function describeFailure(error: unknown, stderr: string): FromStreamThread {
  if (error instanceof GuestError)
    return { ok: false, code: error.code, message: error.message, stderr };
  if (error instanceof StreamAborted)
    return { ok: false, code: undefined, message: "aborted", stderr };
  return { ok: false, code: "trapped", message: String(error), stderr };
}

class RingStreams implements WasiStreams {
  readonly #input: ByteRing;
  readonly #output: ByteRing;
  readonly #clock: GuestClock;
  readonly #limits: StreamLimits;
  readonly #inputBytes: number;

  constructor({ input, output, clock, limits, inputBytes }: Run) {
    this.#input = new ByteRing(input);
    this.#output = new ByteRing(output);
    this.#clock = new GuestClock(clock);
    this.#limits = limits;
    this.#inputBytes = inputBytes;
  }

  read(target: Uint8Array): number {
    const ring = this.#input;
    if (ring.waiting === 0) {
      this.#clock.waiting(() => ring.block("writer", () => ring.waiting > 0 || ring.hasEnded));
    }
    const length = ring.tryRead(target);
    this.#clock.addRead(length);
    return length;
  }

  write(bytes: Uint8Array): void {
    this.#clock.addWritten(bytes.length);
    const { outputBytesMax, outputPerInputMax } = this.#limits;
    const input = Math.max(this.#inputBytes, this.#clock.readBytes);
    const most = Math.max(outputBytesMax, outputPerInputMax * input);
    if (this.#clock.writtenBytes > most) {
      throw new GuestError("output-too-large", `The guest wrote more than ${most} bytes.`);
    }
    const ring = this.#output;
    for (let at = 0; at < bytes.length;) {
      const length = ring.tryWrite(bytes.subarray(at));
      at += length;
      if (length === 0) this.#clock.waiting(() => ring.block("reader", () => ring.hasRoom));
    }
    if (ring.isAborted) throw new StreamAborted();
  }

  /** The whole input. Throws `input-too-large`. */
  readAll(bytesMax: number): Uint8Array {
    let bytes = new Uint8Array(Math.min(Math.max(this.#inputBytes, 65_536), bytesMax));
    for (let at = 0; ;) {
      if (at === bytes.length && at < bytesMax) {
        const larger = new Uint8Array(Math.min(bytesMax, bytes.length * 2));
        larger.set(bytes);
        bytes = larger;
      }
      const rest = at === bytes.length ? new Uint8Array(1) : bytes.subarray(at);
      const length = this.read(rest);
      if (length === 0) return bytes.subarray(0, at);
      if (at === bytes.length) {
        throw new GuestError(
          "input-too-large",
          `The input has more than ${bytesMax} bytes, the limit for modules with \`transform\`.`,
        );
      }
      at += length;
    }
  }

  end(): void {
    this.#output.end();
  }

  leave(): void {
    this.#input.leave();
  }
}
