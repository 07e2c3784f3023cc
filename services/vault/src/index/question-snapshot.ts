// A state of the index that another process reads while the writer goes on.
//
// The index belongs to this process: its locks and the index of its log are in memory, so another process cannot open it. It
// gets a second name of the file and a copy of the log instead. While a reader of this process holds its snapshot,
//
//   - no page is moved from the log to the file that the copied log does not contain as well, so the file does not change
//     below the other process;
//   - the log is not restarted, or its content has been moved to the file completely. Then it may be restarted during the copy,
//     which the salt in its header tells (https://sqlite.org/walformat.html).
import { linkSync, readdirSync, rmSync, statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StoreError } from "../model/store-error.ts";
import { openIndexReader, type IndexConnection } from "./schema.ts";

const NAME = "index-question-";
const NAME_OF_QUESTION = /^index-question-\d+\.sqlite(?:-wal|-shm|-journal)?$/;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const SALT_BYTES = 8;
/** Position of the salt in the header of the log, and in that of a frame. */
const SALT_AT = 16;
const FRAME_SALT_AT = 8;
const PAGE_SIZE_AT = 8;
/** About 1 MiB. */
const FRAMES_PER_READ = 128;
const ATTEMPTS_MAX = 5;
/** Errors of file systems without hard links. A copy is no way: closing the file would end the locks of this process. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** A state of the index, with every commit that was acknowledged before it was taken. */
export interface QuestionSnapshot {
  /** Its file, which can be opened read-only without locks. */
  readonly path: string;
  /** Size of the log of the index. It is not restarted before the release. */
  measureLog(): number;
  /** Size of that log at which the state should be released. */
  readonly logBytesMax: number;
  /** Releases the state and removes its files. Harmless when called again. */
  release(): void;
}

/** Takes the state of the index at `indexPath`. `number` is unique among the states in use. */
export async function takeQuestionSnapshot(
  indexPath: string,
  number: number,
  logBytesMax: number,
): Promise<QuestionSnapshot> {
  const path = join(dirname(indexPath), `${NAME}${number}.sqlite`);
  const log = `${indexPath}-wal`;
  remove(path);
  for (let attempt = 1; ; attempt += 1) {
    const reader = holdSnapshot(indexPath);
    const release = (): void => {
      remove(path);
      if (reader.database.isOpen) reader.close();
    };
    try {
      linkFile(indexPath, path);
      if (await copyLog(log, `${path}-wal`)) {
        return { path, release, logBytesMax, measureLog: () => measure(log) };
      }
    } catch (error) {
      release();
      throw error;
    }
    release();
    if (attempt === ATTEMPTS_MAX) throw new Error("the log of the index was restarted repeatedly");
  }
}

/** Removes the files of states that were in use when the process ended. */
export function clearQuestionSnapshots(indexPath: string): void {
  const folder = dirname(indexPath);
  for (const name of readdirSync(folder)) {
    if (NAME_OF_QUESTION.test(name)) rmSync(join(folder, name), { force: true });
  }
}

function remove(path: string): void {
  for (const ending of ["", "-wal", "-shm", "-journal"])
    rmSync(`${path}${ending}`, { force: true });
}

function measure(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function holdSnapshot(path: string): IndexConnection {
  const reader = openIndexReader(path);
  try {
    reader.database.exec("begin");
    reader.sql("select count(*) from sqlite_schema").get();
    return reader;
  } catch (error) {
    reader.close();
    throw error;
  }
}

function linkFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    throw new StoreError("NotImplemented", "The file system of the index has no hard links.");
  }
}

// False if the log was restarted meanwhile.
async function copyLog(from: string, to: string): Promise<boolean> {
  if (measure(from) < LOG_HEADER_BYTES) return true;
  await using source = await open(from, "r");
  await using target = await open(to, "wx", 0o600);
  const header = await readPart(source, LOG_HEADER_BYTES, 0);
  if (header.length < LOG_HEADER_BYTES) return true;
  await target.write(header);
  await copyFrames(source, target, header);
  return header.equals(await readPart(source, LOG_HEADER_BYTES, 0));
}

// Frames of an earlier round of the log have another salt.
async function copyFrames(source: FileHandle, target: FileHandle, header: Buffer): Promise<void> {
  const salt = header.subarray(SALT_AT, SALT_AT + SALT_BYTES);
  const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT);
  for (let position = LOG_HEADER_BYTES; ;) {
    const part = await readPart(source, FRAMES_PER_READ * frameBytes, position);
    let end = 0;
    while (end + frameBytes <= part.length) {
      const at = end + FRAME_SALT_AT;
      if (!part.subarray(at, at + SALT_BYTES).equals(salt)) break;
      end += frameBytes;
    }
    await target.write(part, 0, end);
    position += end;
    if (end < FRAMES_PER_READ * frameBytes) return;
  }
}

async function readPart(file: FileHandle, bytes: number, position: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes);
  let done = 0;
  while (done < bytes) {
    const { bytesRead } = await file.read(buffer, done, bytes - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}
