// The journal's files: writing groups, syncing, rolling over and dropping what is no longer needed.
import { encodeFileHeader, encodeFrame, fileHeaderBytes, type FileHeader } from "../frame/frame.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { MarkFile } from "./mark.ts";

/** The folder of the journal. */
export const journalFolder = "journal";

/** A place in the journal. */
export type JournalPlace = { file: number; position: number };

/** The path of journal file `number`. */
export function journalPath(number: number): string {
  return `${journalFolder}/${String(number).padStart(16, "0")}.journal`;
}

/** Numbers of the journal files on the disk, ascending. */
export async function listJournal(disk: Disk): Promise<number[]> {
  const names = await disk.list(journalFolder);
  const numbers = names.flatMap((name) => {
    const match = /^(\d{16})\.journal$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return numbers.sort((a, b) => a - b);
}

/** Where a journal starts: the number of its file, the end of the file before, sizes of all earlier ones. */
export type JournalStart = {
  number: number;
  previousEnd: number;
  earlier: ReadonlyMap<number, number>;
  /** The manifest generation that is durable. */
  generation: number;
};

/**
 * The file that groups are written to. One write at a time; `end` is after the last group that was
 * written, `durableEnd` after the last one that was synced.
 */
export class Journal {
  readonly #disk: Disk;
  readonly #salt: () => Buffer;
  #file: DiskFile;
  #header: FileHeader;
  #oldest: number;
  #end = fileHeaderBytes;
  #durableEnd = fileHeaderBytes;
  #earlierBytes = 0;
  #generation: number;
  readonly #mark: MarkFile;
  #markedEnd = fileHeaderBytes;
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
    this.#mark = mark;
  }

  /** Starts a file behind the earlier ones, which are still there. */
  static async start(disk: Disk, salt: () => Buffer, start: JournalStart): Promise<Journal> {
    const { number, previousEnd, earlier, generation } = start;
    const header: FileHeader = { kind: "journal", number, salt: salt(), previousEnd, generation };
    const file = await createFile(disk, header);
    const mark = await MarkFile.start(disk, { file: number, end: fileHeaderBytes, generation });
    const journal = new Journal(disk, salt, file, header, mark);
    for (const [older, bytes] of earlier) {
      journal.#sizes.set(older, bytes);
      journal.#earlierBytes += bytes;
      journal.#oldest = Math.min(journal.#oldest, older);
    }
    return journal;
  }

  /** Where the next group goes. */
  get place(): JournalPlace {
    return { file: this.#header.number, position: this.#end };
  }

  /** Bytes of all files. */
  get bytes(): number {
    return this.#earlierBytes + this.#end;
  }

  /** Whether files before the current one are still there. */
  get hasEarlier(): boolean {
    return this.#oldest < this.#header.number;
  }

  /** Bytes of the file that is written to. */
  get fileBytes(): number {
    return this.#end;
  }

  /**
   * Writes one group. If it fails, nothing of it counts: the next one goes to the same position.
   */
  async write(entries: readonly (readonly Buffer[])[]): Promise<void> {
    const { pieces, bytes } = encodeFrame(this.#header.salt, this.#end, this.#durableEnd, entries);
    await this.#file.write(pieces, this.#end);
    this.#end += bytes;
  }

  /** Takes back the last group, which began at `start`: what it refers to was not written. */
  takeBack(start: JournalPlace): void {
    this.#end = start.position;
    this.#durableEnd = Math.min(this.#durableEnd, start.position);
  }

  /** Makes what was written so far durable. */
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

  /** Goes on in a new file. What was written before is synced first. */
  async roll(): Promise<void> {
    await this.sync();
    const header: FileHeader = {
      kind: "journal",
      number: this.#header.number + 1,
      salt: this.#salt(),
      previousEnd: this.#end,
      generation: this.#generation,
    };
    const file = await this.#createOrUndo(header);
    const before = this.#file;
    this.#sizes.set(this.#header.number, this.#end);
    this.#earlierBytes += this.#end;
    this.#file = file;
    this.#header = header;
    this.#end = fileHeaderBytes;
    this.#durableEnd = fileHeaderBytes;
    this.#markedEnd = 0;
    await Promise.allSettled(this.#syncs);
    await before.close();
    // Durable before the first group, so that the file is missed if it disappears.
    await this.mark(this.place);
    await this.#mark.sync();
  }

  /** Whether groups before `place` are durable that the mark does not cover. */
  wantsMark(place: JournalPlace): boolean {
    return place.file === this.#header.number && this.#markEnd(place) > this.#markedEnd;
  }

  /** Writes down that everything before `place` is durable, as far as it is. */
  mark(place: JournalPlace): Promise<void> {
    this.#marking = this.#marking.catch(() => undefined).then(() => this.#writeMark(place));
    return this.#marking;
  }

  /** Takes note of the manifest generation that is durable; the journal before `place` is applied. */
  async noteGeneration(generation: number, place: JournalPlace): Promise<void> {
    this.#generation = generation;
    this.#markedEnd = 0;
    await this.mark(place);
  }

  /** Removes the files before `file`; a checkpoint covers them. */
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

  // A half-made next file would end this one in the eyes of a recovery, so it has to go again;
  // if it cannot, the error says that the disk failed.
  async #createOrUndo(header: FileHeader): Promise<DiskFile> {
    try {
      return await createFile(this.#disk, header);
    } catch (error) {
      try {
        await this.#disk.remove(journalPath(header.number));
        await this.#disk.syncFolder(journalFolder);
      } catch (cause) {
        throw new LogError("disk-failed", "a new journal file could not be undone", { cause });
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
    await disk.syncFolder(journalFolder);
  } catch (error) {
    await file.close();
    throw error;
  }
  return file;
}
