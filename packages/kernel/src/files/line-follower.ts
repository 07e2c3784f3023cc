// Follows a rotated log with one entry per line: reads what is appended, and continues in the next file after a rotation.
import { closeSync, constants, fstatSync, openSync, promises, read } from "node:fs";
import { promisify } from "node:util";
import { every, type RepeatingTimer } from "../time/index.ts";

const POLL_MS = 100;
const CHUNK_BYTES = 256 * 1024;
/** Bytes that are read of one file before other work gets a turn. */
const TURN_BYTES_MAX = 16 * 1024 * 1024;
/** Polls without a new line after which a rotated file is closed: its writers have opened the next one by then. */
const QUIET_POLLS_MAX = 30;
/** Files that are read at the same time; more often than this in a few seconds no log is rotated. */
const FILES_MAX = 4;
const LINES_MAX = 2_000;
const LINE_BYTES_MAX = 1024 * 1024;
const NEWLINE = 0x0a;

const readFile = promisify(read);

/** Options of {@link LineFollower}. */
export interface LineFollowerOptions {
  /** Path of the log, read at each poll; undefined while there is none. */
  readPath: () => string | undefined;
  /** Receives lines in the order of their file, and the number of further lines that were left out. */
  onLines: (lines: readonly string[], missed: number) => void;
  /** Called once for an error that lasts. */
  onError: (error: unknown) => void;
  /** The log can be read again after an error. */
  onRecovered?: () => void;
  /** Maximum lines that are passed on in one poll, every 100 ms; further ones are only counted. Default 2 000. */
  linesMax?: number;
  /** Longer lines are left out. Default 1 MiB. */
  lineBytesMax?: number;
}

/** A file that is being read. */
interface OpenedFile {
  readonly descriptor: number;
  readonly inode: number;
  offset: number;
  /** The beginning of a line that is not complete yet. */
  rest: Buffer;
  /** True inside a line that is too long. */
  isSkipping: boolean;
  quietPolls: number;
}

/** Follows one log from the time of {@link start} until {@link stop}. */
export class LineFollower {
  readonly #options: LineFollowerOptions;
  readonly #linesMax: number;
  readonly #lineBytesMax: number;
  readonly #bytes = Buffer.alloc(CHUNK_BYTES);
  #files: OpenedFile[] = [];
  #path: string | undefined;
  #timer: RepeatingTimer | undefined;
  #polling: Promise<void> | undefined;
  /** The error of the last poll. */
  #failure: string | undefined;
  /** Lines that this poll may still pass on. */
  #linesLeft = 0;

  constructor(options: LineFollowerOptions) {
    this.#options = options;
    this.#linesMax = options.linesMax ?? LINES_MAX;
    this.#lineBytesMax = options.lineBytesMax ?? LINE_BYTES_MAX;
  }

  /** Begins at the current end of the log: every line that is written after this call is passed on or counted. */
  start(): void {
    if (this.#timer !== undefined) return;
    // A stop that still waits for a poll leaves its files to this start.
    if (this.#files.length === 0) {
      try {
        this.#openAtEnd(this.#options.readPath());
      } catch (error) {
        this.#noteFailure(error);
      }
    }
    this.#timer = every(
      POLL_MS,
      () => this.poll(),
      (error) => this.#noteFailure(error),
    );
  }

  /** Closes the files; resolves when no more lines will come. */
  async stop(): Promise<void> {
    void this.#timer?.stop();
    this.#timer = undefined;
    await this.#polling?.catch(() => undefined);
    if (this.#timer === undefined) {
      this.#closeAll();
      this.#failure = undefined;
    }
  }

  /** Passes on what was appended since the last poll; the timer calls it every 100 ms. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => (this.#polling = undefined));
    return this.#polling;
  }

  // An error that lasts is reported once, not with each poll.
  #noteFailure(error: unknown): void {
    const reason = String(error);
    if (reason === this.#failure) return;
    this.#failure = reason;
    this.#options.onError(error);
  }

  async #poll(): Promise<void> {
    this.#linesLeft = this.#linesMax;
    const path = this.#options.readPath();
    if (path !== this.#path) {
      this.#closeAll();
      this.#openAtEnd(path);
    }
    const current = path === undefined ? undefined : await this.#openCurrent(path);
    for (const file of this.#files) {
      const hadNews = await this.#readNew(file);
      file.quietPolls = hadNews || file.inode === current ? 0 : file.quietPolls + 1;
    }
    this.#closeQuiet();
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#options.onRecovered?.();
  }

  #openAtEnd(path: string | undefined): void {
    // If it fails, the next poll tries it again: from the end, too.
    this.#path = undefined;
    const file = path === undefined ? undefined : openFile(path);
    this.#path = path;
    if (file === undefined) return;
    file.offset = fstatSync(file.descriptor).size;
    this.#files.push(file);
  }

  /** Opens the file at the path, unless it is open; resolves with its inode number. */
  async #openCurrent(path: string): Promise<number | undefined> {
    const status = await promises.stat(path).catch(ignoreMissing);
    if (status?.isFile() !== true) return undefined;
    const known = this.#files.find(({ inode }) => inode === status.ino);
    if (known === undefined) {
      const file = openFile(path);
      if (file !== undefined) this.#files.push(file);
      return file?.inode;
    }
    // Truncated in place.
    if (status.size < known.offset)
      Object.assign(known, { offset: 0, rest: Buffer.alloc(0), isSkipping: false });
    return status.ino;
  }

  async #readNew(file: OpenedFile): Promise<boolean> {
    const from = file.offset;
    while (file.offset - from < TURN_BYTES_MAX) {
      const bytes = this.#bytes;
      const { bytesRead } = await readFile(file.descriptor, bytes, 0, bytes.length, file.offset);
      if (bytesRead === 0) break;
      file.offset += bytesRead;
      this.#split(file, bytes.subarray(0, bytesRead));
    }
    return file.offset > from;
  }

  #split(file: OpenedFile, chunk: Buffer): void {
    const lines: string[] = [];
    let missed = 0;
    let at = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, at);
      if (end === -1) break;
      const bytes = file.rest.length + end - at;
      if (file.isSkipping || bytes > this.#lineBytesMax || this.#linesLeft === 0) missed += 1;
      else {
        const line = chunk.subarray(at, end);
        const isWhole = file.rest.length === 0;
        lines.push((isWhole ? line : Buffer.concat([file.rest, line])).toString("utf8"));
        this.#linesLeft -= 1;
      }
      file.rest = Buffer.alloc(0);
      file.isSkipping = false;
      at = end + 1;
    }
    this.#keepRest(file, chunk.subarray(at));
    if (lines.length > 0 || missed > 0) this.#options.onLines(lines, missed);
  }

  #keepRest(file: OpenedFile, end: Buffer): void {
    if (file.isSkipping || end.length === 0) return;
    if (file.rest.length + end.length > this.#lineBytesMax) {
      file.isSkipping = true;
      file.rest = Buffer.alloc(0);
    } else file.rest = Buffer.concat([file.rest, end]);
  }

  #closeQuiet(): void {
    const surplus = this.#files.length - FILES_MAX;
    this.#files = this.#files.filter((file, index) => {
      const isOver = index < surplus || file.quietPolls > QUIET_POLLS_MAX;
      if (isOver) closeSync(file.descriptor);
      return !isOver;
    });
  }

  #closeAll(): void {
    for (const { descriptor } of this.#files) closeSync(descriptor);
    this.#files = [];
  }
}

function openFile(path: string): OpenedFile | undefined {
  try {
    // A pipe would block, and lose what another program is to read from it.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const status = fstatSync(descriptor);
    if (!status.isFile()) {
      closeSync(descriptor);
      return undefined;
    }
    const rest = Buffer.alloc(0);
    return { descriptor, inode: status.ino, offset: 0, rest, isSkipping: false, quietPolls: 0 };
  } catch (error) {
    return ignoreMissing(error);
  }
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}
