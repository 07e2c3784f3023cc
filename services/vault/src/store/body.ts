// The plain text of a stored body: parts in sequence, decrypted, any range.
import type { OpenBlob } from "../blob/blob-reader.ts";
import type { BlobStore } from "../blob/blob-store.ts";
import { hasKey, type KeyProvider, openBlobKey } from "../blob/encryption.ts";
import { Leases } from "../blob/leases.ts";
import type { BlobRecord } from "../model/blob.ts";
import type { ObjectBody } from "../model/object.ts";
import type { ReadWindow } from "../model/read-window.ts";
import type { PointReader } from "../query/point-reader.ts";
import { DecryptedReader } from "./decrypted-reader.ts";

/** A range of one blob. */
interface Piece {
  blob: BlobRecord;
  start: number;
  end: number;
  key: Buffer | undefined;
}

/** A body that was read with its row: it needs no lease on a file. */
class BodyInMemory implements ObjectBody {
  readonly whole: Buffer;

  constructor(whole: Buffer) {
    this.whole = whole;
  }

  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    if (this.whole.length > 0) yield this.whole;
  }

  recycle(): void {}

  close(): void {}
}

/** A body in files, or encrypted; its first file is open. */
class BodyOfPieces implements ObjectBody {
  readonly whole = undefined;
  readonly #blobs: BlobStore;
  readonly #pieces: readonly Piece[];
  readonly #first: OpenBlob;
  readonly #endLease: () => void;
  readonly #window: ReadWindow | undefined;
  readonly #rest: AsyncGenerator<Buffer, void, undefined>;
  #next: IteratorResult<Buffer, void> | undefined;
  #isClosed = false;

  constructor(
    blobs: BlobStore,
    pieces: readonly Piece[],
    first: OpenBlob,
    endLease: () => void,
    window: ReadWindow | undefined,
  ) {
    this.#window = window;
    this.#blobs = blobs;
    this.#pieces = pieces;
    this.#first = first;
    this.#endLease = endLease;
    this.#rest = this.#read();
  }

  /** Reads the first chunk, so that errors surface before an answer begins. */
  async begin(): Promise<void> {
    this.#next = await this.#rest.next();
  }

  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    const first = this.#next;
    this.#next = undefined;
    try {
      if (first !== undefined && first.done !== true) yield first.value;
      yield* this.#rest;
    } finally {
      this.close();
    }
  }

  async *#read(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (const [index, piece] of this.#pieces.entries()) {
        const isFirst = index === 0;
        const open = isFirst ? this.#first : await this.#blobs.open(piece.blob);
        yield* this.#readPiece(open, piece, !isFirst);
      }
    } finally {
      this.close();
    }
  }

  async *#readPiece(
    open: OpenBlob,
    { blob, start, end, key }: Piece,
    closes: boolean,
  ): AsyncGenerator<Buffer, void, undefined> {
    const window = this.#window;
    try {
      if (key !== undefined) {
        const range = { start, end, size: blob.size };
        const recycle = (chunk: Buffer): void => this.#blobs.recycle(chunk);
        yield* new DecryptedReader({ open, key, range, window, recycle }).read();
        return;
      }
      for await (const chunk of open.read(start, end, window)) {
        window?.give(chunk.length);
        yield chunk;
      }
    } finally {
      if (closes) open.close();
    }
  }

  recycle(chunk: Buffer): void {
    this.#blobs.recycle(chunk);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const unread = this.#next;
    this.#next = undefined;
    if (unread !== undefined && unread.done !== true) this.#blobs.recycle(unread.value);
    this.#first.close();
    this.#endLease();
  }
}

/** Opens bodies. */
export class BodyOpener {
  readonly leases = new Leases();
  readonly #blobs: BlobStore;
  readonly #points: PointReader;
  readonly #keys: KeyProvider | undefined;

  constructor(blobs: BlobStore, points: PointReader, keys: KeyProvider | undefined) {
    this.#blobs = blobs;
    this.#points = points;
    this.#keys = keys;
  }

  /**
   * Opens the bytes `start` up to `end` of a blob that was just looked up, within the memory of the window. `undefined` if
   * the blob or its file has disappeared.
   */
  open(
    blob: BlobRecord | undefined,
    start: number,
    end: number,
    customerKey: Buffer | undefined,
    window?: ReadWindow,
  ): ObjectBody | Promise<ObjectBody | undefined> | undefined {
    if (blob === undefined) return undefined;
    const inMemory = findInMemory(blob, start, end);
    return inMemory === undefined
      ? this.#openPieces(blob, start, end, customerKey, window)
      : new BodyInMemory(inMemory);
  }

  async #openPieces(
    blob: BlobRecord,
    start: number,
    end: number,
    customerKey: Buffer | undefined,
    window: ReadWindow | undefined,
  ): Promise<ObjectBody | undefined> {
    const endLease = this.leases.begin();
    try {
      const pieces = this.#findPieces(blob, start, end, customerKey);
      const [piece] = pieces;
      for (const other of pieces) this.#blobs.requireDrives(other.blob);
      const first = piece === undefined ? undefined : await this.#openFirst(piece.blob);
      if (first === undefined) {
        endLease();
        return undefined;
      }
      const body = new BodyOfPieces(this.#blobs, pieces, first, endLease, window);
      await body.begin();
      return body;
    } catch (error) {
      endLease();
      throw error;
    }
  }

  async #openFirst(blob: BlobRecord): Promise<OpenBlob | undefined> {
    try {
      return await this.#blobs.open(blob);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #findPieces(
    blob: BlobRecord,
    start: number,
    end: number,
    customerKey: Buffer | undefined,
  ): Piece[] {
    const build = (record: BlobRecord, from: number, to: number): Piece => ({
      blob: record,
      start: from,
      end: to,
      key: this.#openKey(record, customerKey),
    });
    if (blob.place.kind !== "parts") return [build(blob, start, end)];
    return this.#points
      .findParts(blob.id, start, end)
      .map((part) =>
        build(part.record, Math.max(0, start - part.start), Math.min(part.size, end - part.start)),
      );
  }

  // A key that was forgotten since the lookup: the blob names another one by now.
  #openKey({ id, cipher }: BlobRecord, customerKey: Buffer | undefined): Buffer | undefined {
    if (cipher === undefined) return undefined;
    const present = hasKey(cipher, this.#keys) ? cipher : this.#points.findBlob(id)?.cipher;
    return openBlobKey(present ?? cipher, this.#keys, id, customerKey);
  }
}

// The bytes of an inline, unencrypted blob; `undefined` for blobs in files and encrypted ones.
function findInMemory({ place, cipher }: BlobRecord, start: number, end: number) {
  if (end <= start) return Buffer.alloc(0);
  if (place.kind !== "inline" || cipher !== undefined) return undefined;
  const { buffer, byteOffset } = place.data;
  return Buffer.from(buffer, byteOffset + start, end - start);
}
