// Appends lines to the access log from one worker: gathered in memory, written behind the requests.
import { closeSync, openSync, write } from "node:fs";

/** What {@link AccessLogWriter} needs. */
export interface AccessLogWriterOptions {
  path: string;
  /** Longest time between a line and its write. */
  flushMs: number;
  /** Gathered bytes that are written at once. */
  flushBytes: number;
  /** Bytes that may wait, those being written included; lines beyond are dropped and counted. */
  pendingBytesMax: number;
  /** Told when a write or a reopening fails, at most once for each failure in a row. */
  onError: (error: Error) => void;
}

/** Flushed within 200 ms or at 64 KiB, at most 8 MiB waiting. */
export const ACCESS_LOG_WRITER_DEFAULT = {
  flushMs: 150,
  flushBytes: 65_536,
  pendingBytesMax: 8_388_608,
} as const;

/**
 * Writes whole lines with `O_APPEND`, so several workers can share one file. One write is under way at a time. Opening
 * fails in the constructor with the system's error.
 */
export class AccessLogWriter {
  /** Lines that were taken, and lines that were dropped. */
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

  /** Takes one line: ASCII, newline included. */
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

  /** Writes what has been taken and opens the path again, for it may be another file now. */
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

  /** Resolves once all that has been taken is written, or was dropped because it could not be. */
  async settle(): Promise<void> {
    if (this.#writingBytes === 0) this.#flush();
    if (this.#writingBytes === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
    });
  }

  /** Writes the rest and closes the file; nothing may be appended any more. */
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
