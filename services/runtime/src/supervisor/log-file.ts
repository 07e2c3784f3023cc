// The log of all services in the data directory: JSON lines, rotated by size.
import { appendFile, mkdir, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** Size in bytes that triggers a rotation. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Number of rotated files. */
export const ROTATED_FILES = 4;
const WAITING_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Options of {@link LogFile}. */
export interface LogFileOptions {
  path: string;
  /** Default 16 MiB. */
  fileBytesMax?: number;
  /** Called once per series of failed writes. */
  onError: (error: unknown) => void;
}

/** Appends lines in the background. Lines are dropped while more than 4 Mi characters wait for the disk. */
export class LogFile {
  /** Lines that were not written. */
  dropped = 0;
  readonly #options: LogFileOptions;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  #sizeBytes = -1;
  #writing: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: LogFileOptions) {
    this.#options = options;
  }

  /** Appends a line, which ends with a newline. */
  append(line: string): void {
    if (this.#waitingCharacters + line.length > WAITING_CHARACTERS_MAX) {
      this.dropped += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingCharacters += line.length;
    this.#writing ??= this.#write();
  }

  /** Resolves when all lines are written. */
  async settle(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingCharacters = 0;
      try {
        await this.#append(Buffer.from(lines.join("")));
        this.#isFailing = false;
      } catch (error) {
        this.dropped += lines.length;
        if (!this.#isFailing) this.#options.onError(error);
        this.#isFailing = true;
      }
    }
    this.#writing = undefined;
  }

  async #append(bytes: Buffer): Promise<void> {
    const { path, fileBytesMax = FILE_BYTES_MAX } = this.#options;
    if (this.#sizeBytes === -1) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      this.#sizeBytes = await stat(path).then(
        ({ size }) => size,
        () => 0,
      );
    }
    if (this.#sizeBytes >= fileBytesMax) await this.#rotate(path);
    await appendFile(path, bytes, { mode: 0o600 });
    this.#sizeBytes += bytes.length;
  }

  async #rotate(path: string): Promise<void> {
    for (let age = ROTATED_FILES - 1; age >= 1; age -= 1) {
      await rename(`${path}.${age}`, `${path}.${age + 1}`).catch(ignoreMissing);
    }
    await rename(path, `${path}.1`);
    this.#sizeBytes = 0;
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
