// A stored body as its owner put it in: parts one after another, decrypted, any range of it.
import type { BlobStore } from "../blob/blob-store.ts";
import type { OpenBlob } from "../blob/blob-reader.ts";
import {
  decryptBody,
  locateCiphertext,
  openBlobKey,
  type KeyProvider,
} from "../blob/encryption.ts";
import { Leases } from "../blob/leases.ts";
import type { BlobRecord } from "../blob/types.ts";
import type { PointReader } from "./point-reader.ts";

/** A stretch of one blob. */
interface Piece {
  blob: BlobRecord;
  start: number;
  end: number;
  key: Buffer | undefined;
}

/** A body that is open for reading; its bytes are `start` up to `end`. */
export class OpenBody {
  readonly whole: Buffer | undefined;
  readonly #blobs: BlobStore;
  readonly #pieces: readonly Piece[];
  readonly #first: OpenBlob | undefined;
  readonly #endLease: () => void;
  #isClosed = false;

  constructor(
    blobs: BlobStore,
    pieces: readonly Piece[],
    first: OpenBlob | undefined,
    endLease: () => void,
  ) {
    this.#blobs = blobs;
    this.#pieces = pieces;
    this.#first = first;
    this.#endLease = endLease;
    const [piece] = pieces;
    if (piece === undefined) this.whole = Buffer.alloc(0);
    else if (pieces.length === 1 && piece.key === undefined) {
      this.whole = first?.inline?.subarray(piece.start, piece.end);
    }
  }

  /** The bytes in order. Ends with `close` in any case. */
  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    try {
      if (this.whole !== undefined) {
        if (this.whole.length > 0) yield this.whole;
        return;
      }
      for (const [index, piece] of this.#pieces.entries()) {
        const open = index === 0 ? this.#first : undefined;
        yield* readPiece(open ?? (await this.#blobs.open(piece.blob)), piece, open === undefined);
      }
    } finally {
      this.close();
    }
  }

  /** Takes back a chunk that nobody looks at any more. */
  recycle(chunk: Buffer): void {
    this.#blobs.recycle(chunk);
  }

  /** Gives the file back. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#first?.close();
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
   * Opens the bytes `start` up to `end` of a blob that has just been looked up; undefined where the blob or its file has
   * gone.
   */
  async open(
    blob: BlobRecord | undefined,
    start: number,
    end: number,
    customerKey: Buffer | undefined,
  ): Promise<OpenBody | undefined> {
    if (blob === undefined) return undefined;
    const endLease = this.leases.begin();
    try {
      const pieces = this.#findPieces(blob, start, end, customerKey);
      const [first] = pieces;
      const open = first === undefined ? undefined : await this.#openFirst(first.blob);
      if (first !== undefined && open === undefined) {
        endLease();
        return undefined;
      }
      return new OpenBody(this.#blobs, pieces, open, endLease);
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
      key:
        record.cipher === undefined
          ? undefined
          : openBlobKey(record.cipher, this.#keys, record.id, customerKey),
    });
    if (end <= start) return [];
    if (blob.place.kind !== "parts") return [build(blob, start, end)];
    return this.#points
      .findParts(blob.id, start, end)
      .map((part) =>
        build(part.record, Math.max(0, start - part.start), Math.min(part.size, end - part.start)),
      );
  }
}

async function* readPiece(open: OpenBlob, piece: Piece, closes: boolean) {
  try {
    const { blob, start, end, key } = piece;
    if (key === undefined) {
      yield* open.read(start, end);
      return;
    }
    const stored = locateCiphertext(start, end, blob.size);
    yield* decryptBody(open.read(stored.start, stored.end), key, { start, end, size: blob.size });
  } finally {
    if (closes) open.close();
  }
}
