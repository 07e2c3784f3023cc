// Pages of a rotated log with one entry per line, read backwards from its end.
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

const CHUNK_BYTES = 256 * 1024;
/** Bytes that one page searches. */
const SEARCHED_BYTES_MAX = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

/** A position in the log: lines before this offset of a file, and those of older files. */
export interface LinePosition {
  file: number;
  offset: number;
}

/** Options of {@link readLinePage}. */
export interface LinePageOptions<T> {
  path: string;
  /** Number of rotated files: `path.1` is the latest of them. */
  rotatedFiles: number;
  /** Undefined for the end of the log. */
  before: LinePosition | undefined;
  limit: number;
  /** Parses a line without its newline; undefined leaves it out. */
  parse: (line: string) => T | undefined;
  /** Default 8 MiB. */
  searchedBytesMax?: number;
}

export interface LinePage<T> {
  /** Newest first. */
  lines: T[];
  /** Position of older lines; undefined at the beginning of the log. */
  next: LinePosition | undefined;
}

/**
 * Reads the lines before a position, newest first. It ends after `limit` lines, or when 8 MiB were searched: a page may be
 * empty and not the last one. A position of a file that was deleted is the beginning of the log.
 */
export async function readLinePage<T>(options: LinePageOptions<T>): Promise<LinePage<T>> {
  const { path, before } = options;
  const seen = new Set<number>();
  const page: LinePage<T> = { lines: [], next: undefined };
  const budget = { bytes: options.searchedBytesMax ?? SEARCHED_BYTES_MAX };
  let isFound = before === undefined;
  for (let age = 0; age <= options.rotatedFiles; age += 1) {
    const file = await openFile(age === 0 ? path : `${path}.${age}`);
    if (file === undefined) continue;
    try {
      const { ino, size } = await file.stat();
      // A rotation in the meantime shows a file twice.
      if (seen.has(ino)) continue;
      seen.add(ino);
      const isStart = !isFound && ino === before?.file;
      if (!isFound && !isStart) continue;
      isFound = true;
      const end = isStart ? Math.min(before.offset, size) : size;
      if (page.lines.length >= options.limit) return { ...page, next: { file: ino, offset: end } };
      const rest = await readBackwards(file, end, options, page.lines, budget);
      if (rest > 0) return { ...page, next: { file: ino, offset: rest } };
    } finally {
      await file.close();
    }
  }
  return page;
}

/** Reads the lines of a file before an offset; resolves with the offset at which it ended. */
async function readBackwards<T>(
  file: FileHandle,
  end: number,
  { limit, parse }: LinePageOptions<T>,
  lines: T[],
  budget: { bytes: number },
): Promise<number> {
  let position = end;
  // The beginning of a line that ends in the chunk after it.
  let tail = Buffer.alloc(0);
  while (position > 0) {
    if (budget.bytes <= 0) {
      const rest = position + tail.length;
      // A line that is longer than what one page searches is skipped.
      return rest < end ? rest : position;
    }
    const start = Math.max(0, position - CHUNK_BYTES);
    const chunk = await readRange(file, start, position - start);
    budget.bytes -= chunk.length;
    const bytes = tail.length === 0 ? chunk : Buffer.concat([chunk, tail]);
    let lineEnd = bytes.length;
    for (;;) {
      const newline = lineEnd === 0 ? -1 : bytes.lastIndexOf(NEWLINE, lineEnd - 1);
      // Without one the line may begin in an earlier chunk.
      if (newline === -1 && start > 0) break;
      const line = parse(bytes.toString("utf8", newline + 1, lineEnd));
      if (line !== undefined) lines.push(line);
      if (newline === -1) return 0;
      lineEnd = newline;
      if (lines.length >= limit) return start + newline;
    }
    tail = bytes.subarray(0, lineEnd);
    position = start;
  }
  return 0;
}

async function readRange(
  file: FileHandle,
  start: number,
  length: number,
): Promise<Buffer<ArrayBuffer>> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
  return bytesRead === length ? buffer : buffer.subarray(0, bytesRead);
}

async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    // A pipe would block, and lose what another program is to read from it.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    return undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
