// Verifies the batches of a segment on their way to the store.
import {
  BATCH_HEADER_BYTES,
  isBatchIntact,
  nextOffsetOf,
  readBatchHeader,
} from "../batch/header.ts";
import { LogError } from "../errors.ts";
import { extentEnd, type Extent } from "../partition/partition.ts";
import { OffsetOrder } from "../segment/offset-order.ts";

const EMPTY = Buffer.alloc(0);

/** A `corrupt` error with the position of the damage in the file. */
export class DamagedSegmentError extends LogError {
  readonly position: number;

  constructor(path: string, position: number) {
    super("corrupt", `no intact batch at ${position} in ${path}`);
    this.position = position;
  }
}

/** Checks the parts of a file in their order. The memory of one batch is the most that it keeps. */
export class UploadCheck {
  readonly #extent: Extent;
  readonly #path: string;
  readonly #order: OffsetOrder;
  /** Position of the next batch. */
  #position: number;
  /** The beginning of a batch that continues in the next part. */
  #rest = EMPTY;

  constructor(extent: Extent, path: string) {
    this.#extent = extent;
    this.#path = path;
    this.#position = extent.position;
    this.#order = new OffsetOrder(extent.baseOffset, extent.nextOffset);
  }

  /** Checks the next part. Throws a `DamagedSegmentError`. */
  add(part: Buffer, position: number): void {
    const skipped = Math.max(0, Math.min(part.length, this.#extent.position - position));
    const fresh = part.subarray(skipped);
    const bytes = this.#rest.length === 0 ? fresh : Buffer.concat([this.#rest, fresh]);
    let at = 0;
    while (at + BATCH_HEADER_BYTES <= bytes.length) {
      const header = readBatchHeader(bytes, at);
      if (header === undefined || this.#position + header.bytes > extentEnd(this.#extent)) {
        throw this.damageAt(this.#position);
      }
      if (at + header.bytes > bytes.length) break;
      const isNext = this.#order.accepts(header, undefined);
      if (!isBatchIntact(bytes, at) || !isNext) throw this.damageAt(this.#position);
      this.#order.next = nextOffsetOf(header);
      at += header.bytes;
      this.#position += header.bytes;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
  }

  /** Checks that the file ended with a batch. Throws a `DamagedSegmentError`. */
  end(): void {
    if (this.#position !== extentEnd(this.#extent)) throw this.damageAt(this.#position);
  }

  damageAt(position: number): DamagedSegmentError {
    return new DamagedSegmentError(this.#path, position);
  }
}
