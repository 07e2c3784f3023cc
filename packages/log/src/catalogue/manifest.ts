// The manifest: the contents of all segments at the last checkpoint. Newer journal entries apply on top.
import {
  encodeFileHeader,
  encodeFrame,
  FILE_HEADER_BYTES,
  type FileHeader,
} from "../frame/frame.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { ManifestDocument } from "./manifest-documents.ts";
import { listManifests, MANIFEST_FOLDER, manifestPath } from "./manifest-files.ts";

/*
 * manifest/<number>.<a|b>.manifest, in frames (see frame.ts). Each entry is one JSON list of
 * documents: a topic, a removed topic, a partition, or a checkpoint, which ends a generation and says
 * that the journal before `journal` is covered. Later documents replace earlier ones about the same
 * subject; documents after the last checkpoint are ignored. When a file has grown to several times its
 * contents, a new complete one is written, synced and renamed.
 *
 * There are two copies, written one after the other. Nothing is trimmed or removed before both are on
 * the medium, so either copy alone is enough for a recovery.
 */
/** Approximate size of the documents in one frame. */
const FRAME_BYTES = 256 * 1024;
/** Size below which a manifest is never rewritten. */
const REWRITE_BYTES_MIN = 1024 * 1024;

/** Writes both copies of the manifest. */
export class Manifest {
  readonly #disk: Disk;
  readonly #salt: () => Buffer;
  #number: number;
  #generation: number;
  #files: readonly DiskFile[] = [];
  #header: FileHeader | undefined;
  #end = 0;
  #wholeBytes = 0;
  #version: 2 | 3;

  /** `number` and `generation` are the highest existing ones, 0 if none; the next write starts new files. */
  constructor(
    disk: Disk,
    salt: () => Buffer,
    { number, generation, version }: { number: number; generation: number; version: 2 | 3 },
  ) {
    this.#disk = disk;
    this.#salt = salt;
    this.#number = number;
    this.#generation = generation;
    this.#version = version;
  }

  /** The format version of the next file. */
  get version(): 2 | 3 {
    return this.#version;
  }

  /** Makes the next write start files of version 3. */
  useVersion3(): void {
    this.#version = 3;
  }

  /** The last generation that is durable in both copies. */
  get generation(): number {
    return this.#generation;
  }

  /** True if `rewrite` should be called instead of `append`. */
  get wantsRewrite(): boolean {
    return (
      this.#files.length === 0 ||
      (this.#version === 3 && this.#header?.version !== 3) ||
      this.#end > Math.max(REWRITE_BYTES_MIN, this.#wholeBytes * 4)
    );
  }

  /**
   * Appends documents durably, the last one a checkpoint of the next generation. `syncData` is awaited after they are
   * written and before they count. May be retried after a full disk.
   */
  async append(
    documents: Iterable<ManifestDocument>,
    syncData: () => Promise<void>,
  ): Promise<void> {
    const [first, second] = this.#files;
    if (first === undefined || second === undefined || this.#header === undefined) {
      throw new LogError("closed", "the manifest has no files yet");
    }
    const end = await writeDocuments(first, this.#header, this.#end, documents);
    await syncData();
    await first.sync();
    await copyBytes(first, second, this.#end, end);
    await second.sync();
    this.#end = end;
    this.#generation++;
  }

  /** Starts new, complete files; each copy counts from its rename on. */
  async rewrite(
    documents: Iterable<ManifestDocument>,
    syncData: () => Promise<void>,
  ): Promise<void> {
    const number = this.#number + 1;
    const header: FileHeader = {
      kind: "manifest",
      number,
      salt: this.#salt(),
      previousEnd: 0,
      generation: this.#generation,
      version: this.#version,
    };
    const files: DiskFile[] = [];
    let end = FILE_HEADER_BYTES;
    try {
      for (const copy of ["a", "b"] as const) {
        const path = manifestPath(number, copy);
        const file = await this.#disk.open(`${path}.new`, "create");
        files.push(file);
        if (files.length === 1) {
          await file.write([encodeFileHeader(header)], 0);
          end = await writeDocuments(file, header, FILE_HEADER_BYTES, documents);
          await syncData();
        } else {
          await copyBytes(files[0]!, file, 0, end);
        }
        await file.sync();
        await this.#disk.rename(`${path}.new`, path);
        await this.#disk.syncFolder(MANIFEST_FOLDER);
      }
    } catch (error) {
      for (const file of files) await file.close();
      throw error;
    }
    for (const file of this.#files) await file.close();
    this.#files = files;
    this.#header = header;
    this.#number = number;
    this.#end = end;
    this.#wholeBytes = end;
    this.#generation++;
    for (const older of await listManifests(this.#disk)) {
      if (older.number < number) await this.#disk.remove(older.path);
    }
  }

  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
  }
}

/** Creates the folder of the manifest. */
export async function prepareManifest(disk: Disk): Promise<void> {
  await disk.makeFolder(MANIFEST_FOLDER);
}

// Each frame says that everything before the first frame is durable.
async function writeDocuments(
  file: DiskFile,
  header: FileHeader,
  position: number,
  documents: Iterable<ManifestDocument>,
): Promise<number> {
  let end = position;
  for (const entry of packDocuments(documents)) {
    const frame = encodeFrame(header.salt, end, position, [[entry]]);
    await file.write(frame.pieces, end);
    end += frame.bytes;
  }
  return end;
}

async function copyBytes(from: DiskFile, to: DiskFile, start: number, end: number): Promise<void> {
  for (let at = start; at < end;) {
    const bytes = Buffer.allocUnsafe(Math.min(FRAME_BYTES, end - at));
    const count = await from.read(bytes, 0, bytes.length, at);
    if (count === 0) throw new LogError("corrupt", "the first copy of the manifest is truncated");
    await to.write([bytes.subarray(0, count)], at);
    at += count;
  }
}

// Puts many small documents into one entry, since a checksum and a parse for each would cost more.
function* packDocuments(documents: Iterable<ManifestDocument>): Generator<Buffer> {
  let texts: string[] = [];
  let length = 0;
  for (const document of documents) {
    const text = JSON.stringify(document);
    texts.push(text);
    length += text.length;
    if (length >= FRAME_BYTES) {
      yield Buffer.from(`[${texts.join(",")}]`);
      texts = [];
      length = 0;
    }
  }
  if (texts.length > 0) yield Buffer.from(`[${texts.join(",")}]`);
}
