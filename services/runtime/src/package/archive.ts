// Archives that tar and npm read. The same files make the same bytes, whenever and by whomever they are packed.
import { createReadStream, createWriteStream, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { encodeTarHead, padTar, TAR_END } from "@platform/kernel/backup";

/** A file for an archive. */
export interface ArchivedFile {
  /** Path in the archive. */
  readonly path: string;
  /** Absolute path of its content. */
  readonly file: string;
  readonly isExecutable: boolean;
}

/** Time of all files, as npm sets it: 1985-10-26T08:15:00Z. */
const TIME_MS = 499_162_500_000;
const FILE_MODE = 0o644;
const PROGRAM_MODE = 0o755;
const WHOLE_BYTES_MAX = 1_048_576;

/** Lists the files below folders and files of `root`, sorted; their paths in the archive begin with `prefix`. */
export function listArchived(
  root: string,
  names: readonly string[],
  prefix: string,
): ArchivedFile[] {
  const found: ArchivedFile[] = [];
  const visit = (path: string): void => {
    const file = join(root, path);
    const stats = lstatSync(file, { throwIfNoEntry: false });
    if (stats?.isDirectory() === true) {
      for (const name of readdirSync(file)) visit(`${path}/${name}`);
    } else if (stats?.isFile() === true) {
      found.push({ path: `${prefix}/${path}`, file, isExecutable: (stats.mode & 0o111) !== 0 });
    }
  };
  for (const name of names) visit(name);
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Writes a compressed archive of files, in their order. */
export async function writeArchive(files: readonly ArchivedFile[], path: string): Promise<void> {
  await pipeline(Readable.from(encode(files)), createGzip({ level: 9 }), createWriteStream(path));
}

async function* encode(files: readonly ArchivedFile[]): AsyncGenerator<Buffer> {
  for (const { path, file, isExecutable } of files) {
    const { size } = lstatSync(file);
    yield encodeTarHead(path, size, TIME_MS, isExecutable ? PROGRAM_MODE : FILE_MODE);
    if (size <= WHOLE_BYTES_MAX) yield readFileSync(file);
    else for await (const piece of createReadStream(file)) yield piece as Buffer;
    yield padTar(size);
  }
  yield TAR_END;
}
