// Writes a snapshot of a service into a repository: what it does not have yet, then the list of files, then the manifest.
import { createHash, randomBytes } from "node:crypto";
import { BackupError } from "../error.ts";
import type { BackupProgress } from "../files.ts";
import { BACKUP_FORMAT, findPathProblem, type BackupManifest } from "../manifest.ts";
import type { Snapshot, SnapshotFile } from "../snapshot.ts";
import type { CopyOrder } from "./copy-messages.ts";
import { CopyThreads } from "./copy-threads.ts";
import {
  type FileEntry,
  makeSnapshotId,
  type Piece,
  readSnapshotTime,
  type SnapshotMark,
} from "./format.ts";
import { PIECE_BYTES_MAX } from "./object-names.ts";
import { ListWriter } from "./list-writer.ts";
import { putPages } from "./page-map.ts";
import { PreviousFiles } from "./previous.ts";
import type { Repository, SavedSnapshot } from "./repository.ts";

/** Pieces that are being stored while the next one is read. */
const AHEAD_MAX = 4;
/** Files of which some pieces are not stored yet, while the next one is read. */
const FILES_AHEAD_MAX = 64;
/** Bytes that a run has read before it starts threads, which take longer to start than to copy so few. */
const THREADS_FROM_BYTES = 16 * 1024 * 1024;
/** Pieces of a file that has grown, above which it is cut anew if they are small. */
const SMALL_PIECES_MAX = 64;

/** Options of {@link writeSnapshot}. */
export interface WriteSnapshotOptions {
  service: string;
  /** Version of the service. */
  version: string;
  /** Version of the service's files. */
  dataFormat: number;
  /** Epoch milliseconds of the snapshot. */
  nowMs: number;
  onProgress?: ((progress: BackupProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Adds a snapshot. Files with the stamp that they had in the snapshot before are not read; the others are read, and stored
 * as far as the repository does not have their pieces. What was stored is read again before the manifest is written. The
 * caller has the lock of the repository, and releases the snapshot.
 */
export async function writeSnapshot(
  repository: Repository,
  options: WriteSnapshotOptions,
  snapshot: Snapshot,
): Promise<SavedSnapshot> {
  const newest = (await repository.listIds()).at(-1);
  // Without the one before, a run only reads and stores more.
  const before = newest === undefined ? undefined : await repository.load(newest);
  // The newest snapshot is the one with the last time, also if the clock was turned back.
  const afterMs = newest === undefined ? 0 : readSnapshotTime(newest) + 1;
  const createdMs = Math.max(options.nowMs, afterMs);
  const id = makeSnapshotId(createdMs, randomBytes(4).toString("hex"));
  const writer = new SnapshotWriter(repository, options, snapshot, before);
  repository.objects.forgetAdded();
  const { lists, files, bytes } = await writer.write();
  await repository.storage.flush();
  const mark: SnapshotMark = {
    repository: repository.mark.repository,
    files,
    bytes,
    added: sum(repository.objects.added.values()),
    point: snapshot.mark,
  };
  const manifest: BackupManifest = {
    format: BACKUP_FORMAT,
    service: options.service,
    service_version: options.version,
    data_format: options.dataFormat,
    created_at: new Date(createdMs).toISOString(),
    mark,
    files: lists,
  };
  await repository.addSnapshot(id, manifest);
  // As others read it.
  return repository.load(id);
}

class SnapshotWriter {
  readonly #repository: Repository;
  readonly #options: WriteSnapshotOptions;
  readonly #snapshot: Snapshot;
  readonly #previous: PreviousFiles;
  readonly #list: ListWriter;
  readonly #ahead: Promise<FileEntry>[] = [];
  readonly #storing = new Set<Promise<unknown>>();
  /** Memory of pieces: at most one for each that is being stored, and one that is being read. */
  readonly #buffers: Buffer[] = [];
  #threads: CopyThreads | undefined;
  /** The first failure: nothing more is read. */
  #fault: unknown;
  #bytesRead = 0;
  #files = 0;
  #bytes = 0;

  constructor(
    repository: Repository,
    options: WriteSnapshotOptions,
    snapshot: Snapshot,
    before: SavedSnapshot | undefined,
  ) {
    this.#repository = repository;
    this.#options = options;
    this.#snapshot = snapshot;
    this.#previous = new PreviousFiles(before && repository.readLists(before));
    this.#list = new ListWriter(repository.objects, before?.manifest.files ?? []);
  }

  async write(): Promise<{ lists: BackupManifest["files"]; files: number; bytes: number }> {
    try {
      for await (const file of this.#snapshot.files) {
        this.#options.signal?.throwIfAborted();
        const problem = findPathProblem(file.path);
        if (problem !== undefined)
          throw new BackupError(`${file.path} cannot be backed up: ${problem}`);
        const { entry } = await this.#store(file);
        // It is awaited later, in its turn.
        entry.catch(() => undefined);
        this.#ahead.push(entry);
        this.#files += 1;
        while (this.#ahead.length > FILES_AHEAD_MAX)
          await this.#list.add(await this.#ahead.shift()!);
      }
      for (const entry of this.#ahead) await this.#list.add(await entry);
    } finally {
      // Nothing is written after the end, when others may have the lock.
      await Promise.allSettled(this.#storing);
      await this.#threads?.close();
    }
    return { lists: await this.#list.end(), files: this.#files, bytes: this.#bytes };
  }

  // Resolves when the file was read, or can be read later; its last pieces may still be written.
  async #store(file: SnapshotFile): Promise<{ entry: Promise<FileEntry> }> {
    const { path, bytes, stamp, pageBytes } = file;
    const before = await this.#previous.find(path);
    if (stamp !== undefined && before?.stamp === stamp && before.bytes === bytes) {
      this.#count(bytes);
      return { entry: Promise.resolve(before) };
    }
    if (pageBytes !== undefined) {
      const metered = { ...file, read: () => this.#meter(file) };
      const entry = putPages(this.#repository.objects, metered, pageBytes, before);
      this.#track(entry, () => undefined);
      // A file that stays is read while threads copy the next ones.
      if (file.source === undefined) await entry;
      return { entry };
    }
    const pieces = await this.#storePieces(file, before);
    const entry = Promise.all(pieces).then((stored) => ({
      path,
      bytes,
      ...(stamp === undefined ? {} : { stamp }),
      pieces: stored,
    }));
    return { entry };
  }

  async #storePieces(file: SnapshotFile, before: FileEntry | undefined): Promise<Promise<Piece>[]> {
    this.#bytesRead += file.bytes;
    if (file.source === undefined || this.#bytesRead < THREADS_FROM_BYTES)
      return this.#readPieces(file, before);
    const { storage, key } = this.#repository;
    if (storage.folder === undefined) return this.#readPieces(file, before);
    this.#threads ??= new CopyThreads({ folder: storage.folder, key: key?.share() });
    return this.#copyPieces(this.#threads, file, file.source, before);
  }

  async #copyPieces(
    threads: CopyThreads,
    { path, bytes }: SnapshotFile,
    source: string,
    before: FileEntry | undefined,
  ): Promise<Promise<Piece>[]> {
    const known = chooseKnown(before);
    const pieces: Promise<Piece>[] = [];
    for (let at = 0; at < bytes;) {
      while (this.#storing.size >= threads.places) await Promise.race(this.#storing);
      this.#options.signal?.throwIfAborted();
      if (this.#fault !== undefined) throw this.#fault;
      const same = known[pieces.length];
      const length = Math.min(same?.bytes ?? PIECE_BYTES_MAX, bytes - at);
      const order = { path, source, at, bytes: length, known: same };
      const piece = this.#copy(threads, order);
      this.#track(piece, () => this.#count(length));
      pieces.push(piece);
      at += length;
    }
    return pieces;
  }

  async #copy(threads: CopyThreads, order: CopyOrder): Promise<Piece> {
    const { piece, isAdded } = await threads.copy(order);
    this.#repository.objects.noteStored(piece, isAdded);
    return piece;
  }

  #track(piece: Promise<unknown>, end: () => void): void {
    const ended: Promise<unknown> = piece
      .catch((error: unknown) => (this.#fault ??= error))
      .then(() => {
        end();
        this.#storing.delete(ended);
      });
    this.#storing.add(ended);
  }

  // Pieces end where those of the snapshot before did: a file that has only grown keeps them.
  async #readPieces(file: SnapshotFile, before: FileEntry | undefined): Promise<Promise<Piece>[]> {
    const known = chooseKnown(before);
    const pieces: Promise<Piece>[] = [];
    let buffer = this.#buffers.pop();
    let length = 0;
    let hash = createHash("sha256");
    const end = async (): Promise<void> => {
      const plain = hash.digest("hex");
      const same = known[pieces.length];
      if (same?.bytes === length && (same.plain ?? same.sha256) === plain) {
        pieces.push(Promise.resolve(same));
      } else {
        const { piece } = await this.#put(file.path, buffer!, length, plain);
        pieces.push(piece);
        buffer = this.#buffers.pop();
      }
      length = 0;
      hash = createHash("sha256");
    };
    for await (const chunk of this.#meter(file)) {
      for (let rest = chunk; rest.length > 0;) {
        const bytesMax = known[pieces.length]?.bytes ?? PIECE_BYTES_MAX;
        const part = rest.subarray(0, bytesMax - length);
        hash.update(part);
        buffer ??= Buffer.allocUnsafeSlow(PIECE_BYTES_MAX);
        buffer.set(part, length);
        length += part.length;
        rest = rest.subarray(part.length);
        if (length === bytesMax) await end();
      }
    }
    if (length > 0) await end();
    if (buffer !== undefined) this.#buffers.push(buffer);
    return pieces;
  }

  // Resolves when it has begun. The buffer is used again afterwards.
  async #put(
    path: string,
    buffer: Buffer,
    length: number,
    plain: string,
  ): Promise<{ piece: Promise<Piece> }> {
    while (this.#storing.size >= AHEAD_MAX) await Promise.race(this.#storing);
    if (this.#fault !== undefined) throw this.#fault;
    const piece = this.#repository.objects.put(path, buffer.subarray(0, length), plain);
    this.#track(piece, () => this.#buffers.push(buffer));
    return { piece };
  }

  async *#meter({ read }: SnapshotFile): AsyncGenerator<Uint8Array> {
    for await (const chunk of read()) {
      this.#options.signal?.throwIfAborted();
      yield chunk;
      this.#count(chunk.length);
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#options.onProgress?.({
      phase: "copying",
      files: this.#files,
      bytes: this.#bytes,
      bytesTotal: this.#snapshot.bytes,
    });
  }
}

function chooseKnown(before: FileEntry | undefined): readonly Piece[] {
  const pieces = before?.pieces ?? [];
  const mean = (before?.bytes ?? 0) / Math.max(1, pieces.length);
  return pieces.length > SMALL_PIECES_MAX && mean < PIECE_BYTES_MAX / 4 ? [] : pieces;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
