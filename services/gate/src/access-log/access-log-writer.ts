// Appends the access log lines of one worker: buffered in memory, written in the background.
import { closeSync, fstatSync, openSync, readSync, write, writeSync } from "node:fs";

export interface AccessLogWriterOptions {
  path: string;
  /** Maximum delay between a line and its write. */
  flushMs: number;
  /** Size of a chunk: a full one is written immediately. */
  flushBytes: number;
  /** Maximum number of buffered bytes, including those being written; further lines are dropped and counted. */
  pendingBytesMax: number;
  /** Called when a write or reopen fails; once per series of consecutive failures. */
  onError: (error: Error) => void;
}

/**
 * Flushes within 200 ms or at 256 KiB; buffers at most 8 MiB. A write costs two context switches to a thread of libuv
 * and back, whatever its size: with few large writes, that is little per line.
 */
export const ACCESS_LOG_WRITER_DEFAULT = {
  flushMs: 150,
  flushBytes: 262_144,
  pendingBytesMax: 8_388_608,
} as const;

/** Whole lines that are written together. */
interface Chunk {
  readonly bytes: Buffer;
  used: number;
  lines: number;
}

const LF = 0x0a;
const LINE_END = Buffer.of(LF);

/**
 * Writes whole lines with `O_APPEND`, so several workers can share one file. Only one write is in flight at a time. The
 * constructor throws the system's error if the file cannot be opened.
 */
export class AccessLogWriter {
  /** Numbers of accepted and of dropped lines. */
  lines = 0;
  dropped = 0;
  readonly #options: AccessLogWriterOptions;
  #descriptor: number;
  /** Receives lines. */
  #chunk: Chunk | undefined;
  /** Wait to be written, the oldest first. */
  readonly #ready: Chunk[] = [];
  #spare: Buffer | undefined;
  #pendingBytes = 0;
  #isWriting = false;
  /** The lines received during a write follow it immediately. */
  #isDue = false;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;
  /** A failed write left a part of a line at the end of the file. */
  #isTorn = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: AccessLogWriterOptions) {
    this.#options = options;
    this.#descriptor = openLog(options.path);
  }

  /** Appends one line: ASCII with a trailing newline. */
  append(line: string): void {
    const chunk = this.#admit(line.length);
    if (chunk !== undefined) chunk.bytes.write(line, chunk.used - line.length, "latin1");
  }

  /** Appends the line `bytes[0, length)`, like {@link append}. */
  appendBytes(bytes: Buffer, length: number): void {
    const chunk = this.#admit(length);
    if (chunk !== undefined) bytes.copy(chunk.bytes, chunk.used - length, 0, length);
  }

  /** Flushes the buffer and opens the path again, because it may be another file now. */
  async reopen(): Promise<void> {
    do await this.settle();
    while (this.#isWriting);
    try {
      const next = openLog(this.#options.path);
      closeSync(this.#descriptor);
      this.#descriptor = next;
      this.#isFailing = false;
      this.#isTorn = false;
    } catch (error) {
      this.#report(error as Error);
    }
  }

  /** Resolves when all accepted lines are written, or dropped after a failed write. */
  async settle(): Promise<void> {
    this.#flush();
    if (!this.#isWriting) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
    });
  }

  /** Flushes the buffer and closes the file; `append` must not be called afterwards. */
  async close(): Promise<void> {
    await this.settle();
    clearTimeout(this.#timer);
    closeSync(this.#descriptor);
  }

  // Counts a line and reserves its place at the end of the returned chunk; undefined if the line is dropped.
  #admit(length: number): Chunk | undefined {
    if (this.#pendingBytes + length > this.#options.pendingBytesMax) {
      this.dropped++;
      return undefined;
    }
    let chunk = this.#chunk;
    if (chunk === undefined || chunk.used + length > chunk.bytes.length) {
      if (chunk !== undefined) this.#seal(chunk);
      chunk = this.#chunk = { bytes: this.#takeBytes(length), used: 0, lines: 0 };
    }
    chunk.used += length;
    chunk.lines++;
    this.#pendingBytes += length;
    this.lines++;
    this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs).unref();
    return chunk;
  }

  #takeBytes(length: number): Buffer {
    const { flushBytes } = this.#options;
    if (length > flushBytes) return Buffer.allocUnsafeSlow(length);
    const bytes = this.#spare ?? Buffer.allocUnsafeSlow(flushBytes);
    this.#spare = undefined;
    return bytes;
  }

  // During a write, further lines join the chunk instead: single lines would cost as much to write as a full chunk.
  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isWriting) this.#isDue = true;
    else if (this.#chunk !== undefined) this.#seal(this.#chunk);
  }

  #seal(chunk: Chunk): void {
    this.#chunk = undefined;
    this.#ready.push(chunk);
    if (!this.#isWriting) this.#writeNext();
  }

  #writeNext(): void {
    if (this.#isDue && this.#ready.length === 0 && this.#chunk !== undefined) {
      this.#ready.push(this.#chunk);
      this.#chunk = undefined;
    }
    const next = this.#ready.shift();
    this.#isWriting = next !== undefined;
    if (next !== undefined) {
      this.#write(next, 0);
      return;
    }
    this.#isDue = false;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #write(chunk: Chunk, from: number): void {
    if (this.#isTorn) {
      this.#endTornLine(chunk);
      return;
    }
    const { bytes, used } = chunk;
    write(this.#descriptor, bytes, from, used - from, null, (error, written) => {
      if (error !== null) {
        this.#isTorn = from > 0 && bytes[from - 1] !== LF;
        this.#drop(chunk, from, error);
      } else if (from + written < used) this.#write(chunk, from + written);
      else {
        this.#isFailing = false;
        this.#finish(chunk);
      }
    });
  }

  // Otherwise, the first line of this chunk would be lost as the rest of the torn one.
  #endTornLine(chunk: Chunk): void {
    write(this.#descriptor, LINE_END, 0, 1, null, (error) => {
      this.#isTorn = error !== null;
      if (error === null) this.#write(chunk, 0);
      else this.#drop(chunk, 0, error);
    });
  }

  #drop(chunk: Chunk, from: number, error: Error): void {
    let whole = 0;
    for (let at = chunk.bytes.indexOf(LF); at !== -1 && at < from; whole++)
      at = chunk.bytes.indexOf(LF, at + 1);
    this.dropped += chunk.lines - whole;
    this.#report(error);
    this.#finish(chunk);
  }

  #finish({ bytes, used }: Chunk): void {
    this.#pendingBytes -= used;
    if (bytes.length === this.#options.flushBytes) this.#spare = bytes;
    this.#writeNext();
  }

  #report(error: Error): void {
    if (!this.#isFailing) this.#options.onError(error);
    this.#isFailing = true;
  }
}

function openLog(path: string): number {
  const descriptor = openSync(path, "a", 0o640);
  try {
    endLastLine(path, descriptor);
  } catch {
    // A file that can be written but not read: a torn line costs the next one.
  }
  return descriptor;
}

/** A crash or a full disk may have left a part of a line. */
function endLastLine(path: string, descriptor: number): void {
  const status = fstatSync(descriptor);
  if (!status.isFile() || status.size === 0) return;
  const last = Buffer.alloc(1);
  const reader = openSync(path, "r");
  try {
    readSync(reader, last, 0, 1, status.size - 1);
  } finally {
    closeSync(reader);
  }
  if (last[0] !== LF) writeSync(descriptor, LINE_END);
}
