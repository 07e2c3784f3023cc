// Appends the access log lines of one worker: buffered in memory, written in the background.
import { closeSync, openSync, write } from "node:fs";

/** Options of {@link AccessLogWriter}. */
export interface AccessLogWriterOptions {
  path: string;
  /** Maximum delay between a line and its write. */
  flushMs: number;
  /** Buffered bytes that trigger an immediate write. */
  flushBytes: number;
  /** Maximum number of buffered bytes, including those being written; further lines are dropped and counted. */
  pendingBytesMax: number;
  /** Called when a write or reopen fails; once per series of consecutive failures. */
  onError: (error: Error) => void;
}

/** Flushes within 200 ms or at 64 KiB; buffers at most 8 MiB. */
export const ACCESS_LOG_WRITER_DEFAULT = {
  flushMs: 150,
  flushBytes: 65_536,
  pendingBytesMax: 8_388_608,
} as const;

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
  #pending = "";
  #pendingLines = 0;
  #writingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: AccessLogWriterOptions) {
    this.#options = options;
    this.#descriptor = openLog(options.path);
  }

  /** Appends one line: ASCII with a trailing newline. */
  append(line: string): void {
    const waiting = this.#pending.length + this.#writingBytes;
    if (waiting + line.length > this.#options.pendingBytesMax) {
      this.dropped++;
      return;
    }
    this.lines++;
    this.#pendingLines++;
    this.#pending += line;
    if (this.#writingBytes > 0) return;
    if (this.#pending.length >= this.#options.flushBytes) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushMs).unref();
  }

  /** Flushes the buffer and opens the path again, because it may be another file now. */
  async reopen(): Promise<void> {
    await this.settle();
    try {
      const next = openLog(this.#options.path);
      closeSync(this.#descriptor);
      this.#descriptor = next;
      this.#isFailing = false;
    } catch (error) {
      this.#report(error as Error);
    }
  }

  /** Resolves when all accepted lines are written, or dropped after a failed write. */
  async settle(): Promise<void> {
    if (this.#writingBytes === 0) this.#flush();
    if (this.#writingBytes === 0) return;
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

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#pending === "") return;
    const bytes = Buffer.from(this.#pending, "latin1");
    const lines = this.#pendingLines;
    this.#pending = "";
    this.#pendingLines = 0;
    this.#writingBytes = bytes.length;
    this.#write(bytes, 0, lines);
  }

  #write(bytes: Buffer, from: number, lines: number): void {
    write(this.#descriptor, bytes, from, bytes.length - from, null, (error, written) => {
      if (error !== null) {
        this.dropped += lines;
        this.#report(error);
      } else if (from + written < bytes.length) {
        this.#write(bytes, from + written, lines);
        return;
      } else {
        this.#isFailing = false;
      }
      this.#writingBytes = 0;
      this.#flush();
      if (this.#writingBytes === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    });
  }

  #report(error: Error): void {
    if (!this.#isFailing) this.#options.onError(error);
    this.#isFailing = true;
  }
}

function openLog(path: string): number {
  return openSync(path, "a", 0o640);
}
