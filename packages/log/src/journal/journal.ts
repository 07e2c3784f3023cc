// The journal files: writes and syncs groups, starts new files, removes old ones.
import {
  encodeFileHeader,
  encodeFrame,
  FILE_HEADER_BYTES,
  type FileHeader,
} from "../frame/frame.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { MarkFile } from "./mark.ts";

/** The folder of the journal. */
export const JOURNAL_FOLDER = "journal";

/** A position in the journal. */
export interface JournalPlace {
  file: number;
  position: number;
}

/** The path of journal file `number`. */
export function journalPath(number: number): string {
  return `${JOURNAL_FOLDER}/${String(number).padStart(16, "0")}.journal`;
}

/** Numbers of the existing journal files, ascending. */
export async function listJournal(disk: Disk): Promise<number[]> {
  const names = await disk.list(JOURNAL_FOLDER);
  const numbers = names.flatMap((name) => {
    const match = /^(\d{16})\.journal$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return numbers.sort((a, b) => a - b);
}

/** The first file that a `Journal` writes, and the files before it. */
export interface JournalStart {
  /** Number of the first file to write. */
  number: number;
  /** Valid bytes of the file before it; 0 if there is none. */
  previousEnd: number;
  /** Sizes of all earlier files by number. */
  earlier: ReadonlyMap<number, number>;
  /** The last durable manifest generation. */
  generation: number;
  /** Format version of the new files. */
  version: 2 | 3;
}

/**
 * The journal file that groups are written to, one write at a time. `end` is the position after the last
 * written group, `durableEnd` the position after the last synced one.
 */
export class Journal {
  readonly #disk: Disk;
  readonly #salt: () => Buffer;
  #file: DiskFile;
  #header: FileHeader;
  #oldest: number;
  #end = FILE_HEADER_BYTES;
  #durableEnd = FILE_HEADER_BYTES;
  #earlierBytes = 0;
  #generation: number;
  #version: 2 | 3;
  readonly #mark: MarkFile;
  #markedEnd = FILE_HEADER_BYTES;
  #marking: Promise<void> = Promise.resolve();
  readonly #sizes = new Map<number, number>();
  readonly #syncs = new Set<Promise<void>>();

  private constructor(
    disk: Disk,
    salt: () => Buffer,
    file: DiskFile,
    header: FileHeader,
    mark: MarkFile,
  ) {
    this.#disk = disk;
    this.#salt = salt;
    this.#file = file;
    this.#header = header;
    this.#oldest = header.number;
    this.#generation = header.generation;
    this.#version = header.version ?? 2;
    this.#mark = mark;
  }

  /** Starts a new file after the earlier ones, which still exist. */
  static async start(disk: Disk, salt: () => Buffer, start: JournalStart): Promise<Journal> {
    const { number, previousEnd, earlier, generation, version } = start;
    const header: FileHeader = {
      kind: "journal",
      number,
      salt: salt(),
      previousEnd,
      generation,
      version,
    };
    const file = await createFile(disk, header);
    const mark = await MarkFile.start(disk, { file: number, end: FILE_HEADER_BYTES, generation });
    const journal = new Journal(disk, salt, file, header, mark);
    for (const [older, bytes] of earlier) {
      journal.#sizes.set(older, bytes);
      journal.#earlierBytes += bytes;
      journal.#oldest = Math.min(journal.#oldest, older);
    }
    return journal;
  }

  /** Position of the next group. */
  get place(): JournalPlace {
    return { file: this.#header.number, position: this.#end };
  }

  /** Size of all files. */
  get bytes(): number {
    return this.#earlierBytes + this.#end;
  }

  /** True if files before the current one still exist. */
  get hasEarlier(): boolean {
    return this.#oldest < this.#header.number;
  }

  /** Size of the current file. */
  get fileBytes(): number {
    return this.#end;
  }

  /** The format version of the current file. */
  get version(): 2 | 3 {
    return this.#header.version ?? 2;
  }

  /** Makes the next file one of version 3. */
  useVersion3(): void {
    this.#version = 3;
  }

  /** Writes one group. After a failure the next group overwrites it. */
  async write(entries: readonly (readonly Buffer[])[]): Promise<void> {
    const { pieces, bytes } = encodeFrame(this.#header.salt, this.#end, this.#durableEnd, entries);
    await this.#file.write(pieces, this.#end);
    this.#end += bytes;
  }

  /** Writes one group and resolves when it is durable. All groups before it must be. */
  async writeDurably(entries: readonly (readonly Buffer[])[]): Promise<void> {
    const { pieces, bytes } = encodeFrame(this.#header.salt, this.#end, this.#durableEnd, entries);
    await this.#file.writeDurably(pieces, this.#end);
    this.#end += bytes;
    this.#durableEnd = this.#end;
  }

  /** Discards the last group, which began at `start`, because the data it refers to was not written. */
  takeBack(start: JournalPlace): void {
    this.#end = start.position;
    this.#durableEnd = Math.min(this.#durableEnd, start.position);
  }

  /** Makes everything written so far durable. */
  async sync(): Promise<void> {
    const end = this.#end;
    const file = this.#file;
    const syncing = file.sync();
    this.#syncs.add(syncing);
    try {
      await syncing;
    } finally {
      this.#syncs.delete(syncing);
    }
    if (file === this.#file) this.#durableEnd = Math.max(this.#durableEnd, end);
  }

  /** Starts a new file, after syncing the current one. */
  async roll(): Promise<void> {
    await this.sync();
    const header: FileHeader = {
      kind: "journal",
      number: this.#header.number + 1,
      salt: this.#salt(),
      previousEnd: this.#end,
      generation: this.#generation,
      version: this.#version,
    };
    const file = await this.#createOrUndo(header);
    const before = this.#file;
    this.#sizes.set(this.#header.number, this.#end);
    this.#earlierBytes += this.#end;
    this.#file = file;
    this.#header = header;
    this.#end = FILE_HEADER_BYTES;
    this.#durableEnd = FILE_HEADER_BYTES;
    this.#markedEnd = 0;
    await Promise.allSettled(this.#syncs);
    await before.close();
    // Durable before the first group, so that a missing file is detected.
    await this.mark(this.place);
    await this.#mark.sync();
  }

  /** True if durable groups before `place` are not covered by the mark. */
  wantsMark(place: JournalPlace): boolean {
    return place.file === this.#header.number && this.#markEnd(place) > this.#markedEnd;
  }

  /** Records in the mark that everything before `place` is durable, as far as it is. */
  mark(place: JournalPlace): Promise<void> {
    this.#marking = this.#marking.catch(() => undefined).then(() => this.#writeMark(place));
    return this.#marking;
  }

  /** Notes the durable manifest generation; the journal before `place` has been applied. */
  async noteGeneration(generation: number, place: JournalPlace): Promise<void> {
    this.#generation = generation;
    this.#markedEnd = 0;
    await this.mark(place);
  }

  /** The files with the groups before `place`, oldest first, and their sizes up to there. */
  listFiles(place: JournalPlace): { path: string; bytes: number }[] {
    const files: { path: string; bytes: number }[] = [];
    for (let number = this.#oldest; number <= place.file; number++) {
      const bytes = number === place.file ? place.position : this.#sizes.get(number);
      if (bytes !== undefined) files.push({ path: journalPath(number), bytes });
    }
    return files;
  }

  /** Removes the files before `file`, which a checkpoint covers. */
  async trim(file: number): Promise<void> {
    while (this.#oldest < Math.min(file, this.#header.number)) {
      await this.#disk.remove(journalPath(this.#oldest));
      this.#earlierBytes -= this.#sizes.get(this.#oldest) ?? 0;
      this.#sizes.delete(this.#oldest);
      this.#oldest++;
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#syncs, this.#marking]);
    await this.#file.close();
    await this.#mark.close();
  }

  #markEnd(place: JournalPlace): number {
    return Math.min(place.position, this.#durableEnd);
  }

  async #writeMark(place: JournalPlace): Promise<void> {
    if (!this.wantsMark(place)) return;
    const end = this.#markEnd(place);
    await this.#mark.write({ file: place.file, end, generation: this.#generation });
    this.#markedEnd = end;
  }

  // To a recovery an incomplete next file would mark the end of this one, so it must be removed. If that
  // fails, the error is `disk-failed`.
  async #createOrUndo(header: FileHeader): Promise<DiskFile> {
    try {
      return await createFile(this.#disk, header);
    } catch (error) {
      try {
        await this.#disk.remove(journalPath(header.number));
        await this.#disk.syncFolder(JOURNAL_FOLDER);
      } catch (cause) {
        throw new LogError("disk-failed", "an incomplete journal file could not be removed", {
          cause,
        });
      }
      throw error;
    }
  }
}

async function createFile(disk: Disk, header: FileHeader): Promise<DiskFile> {
  const file = await disk.open(journalPath(header.number), "create");
  try {
    await file.write([encodeFileHeader(header)], 0);
    await file.sync();
    await disk.syncFolder(JOURNAL_FOLDER);
  } catch (error) {
    await file.close();
    throw error;
  }
  return file;
}
