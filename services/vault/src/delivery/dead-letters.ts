// Undeliverable events, one JSON line each, in files of bounded size and number.
import { appendFile, mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { PendingEvent } from "../model/event.ts";

/** The destination of undeliverable events. */
export interface DeadLetters {
  /** Resolves when the line is written. The target is omitted: it may contain a password. */
  add(event: PendingEvent, reason: string, attempts: number): Promise<void>;
}

/** Limits of the files. */
export interface DeadLetterOptions {
  path: string;
  /** A file of this size is renamed to `<path>.1`, replacing the previous one. Default 16 MiB. */
  fileBytesMax?: number;
  now: () => number;
}

/** Appends to `path`; at most twice `fileBytesMax` is kept. */
export function createDeadLetters(options: DeadLetterOptions): DeadLetters {
  const { path, fileBytesMax = 16 * 1024 * 1024, now } = options;
  let last: Promise<void> = Promise.resolve();

  async function write(line: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size >= fileBytesMax) {
      await rm(`${path}.1`, { force: true });
      await rename(path, `${path}.1`);
    }
    await appendFile(path, line, { mode: 0o600, flush: true });
  }

  return {
    add(event, reason, attempts) {
      const { target: _target, ...rest } = event;
      const line = { given_up_at: new Date(now()).toISOString(), reason, attempts, ...rest };
      const written = last.then(() => write(`${JSON.stringify(line)}\n`));
      last = written.catch(() => undefined);
      return written;
    },
  };
}
