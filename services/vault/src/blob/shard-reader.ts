// Reads a body from its shards: from the data shards if they are intact, from any k shards otherwise.
import type { BlobRecord } from "../model/blob.ts";
import type { ReadWindow } from "../model/read-window.ts";
import { StoreError } from "../model/store-error.ts";
import type { OpenBlob } from "./blob-reader.ts";
import type { DamageListener } from "./copy-reader.ts";
import type { DriveSet } from "./drive/drive-set.ts";
import type { Drive } from "./drive/drive.ts";
import type { ReedSolomon } from "./erasure/reed-solomon.ts";
import { FRAME_BYTES } from "./layout.ts";
import { limitRead, ROOM_TAKEN } from "./read-window.ts";
import { locateStripe, measureShard, type Stripe } from "./shard-layout.ts";

/** A running read up to `stop`, one buffer per unit. */
interface StripeRead {
  stop: number;
  units: Promise<Buffer[]>;
}

/** The shards of one body, opened when needed. */
export class ShardBlob implements OpenBlob {
  readonly #blob: BlobRecord;
  readonly #code: ReedSolomon;
  readonly #drives: readonly Drive[];
  readonly #onDamage: DamageListener;
  readonly #opening = new Map<number, Promise<OpenBlob>>();
  // Shards that could not be read; they are not retried.
  readonly #lost = new Set<number>();
  #isClosed = false;

  constructor(blob: BlobRecord, drives: DriveSet, code: ReedSolomon, onDamage: DamageListener) {
    this.#blob = blob;
    this.#code = code;
    this.#drives = drives.rankShards(blob.id);
    this.#onDamage = onDamage;
  }

  /** Rejects with `ENOENT` if no drive has a shard: the body is gone. */
  async open(): Promise<this> {
    for (const [shard, drive] of this.#drives.entries()) {
      if (!drive.isPresent) continue;
      try {
        await this.#use(shard);
        return this;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") return this;
      }
    }
    throw Object.assign(new Error("no drive has a shard of the body"), { code: "ENOENT" });
  }

  async *read(
    start: number,
    end: number,
    window?: ReadWindow,
  ): AsyncGenerator<Buffer, void, undefined> {
    // Window bytes charged for data that has not been yielded.
    let taken = 0;
    let ahead: StripeRead | undefined;
    try {
      for (let at = start; at < end;) {
        let current = ahead ?? this.#readStripe(at, end, window);
        if (current === undefined) {
          const stop = this.#findStop(at, end, limitRead(window));
          const room = window?.take(stop - at);
          if (room !== undefined) await room;
          current = this.#begin(at, stop);
        }
        if (current !== ahead) taken += current.stop - at;
        ahead = undefined;
        const units = await current.units;
        const { stop } = current;
        if (stop < end) ahead = this.#readStripe(stop, end, window);
        if (ahead !== undefined) taken += ahead.stop - stop;
        for (const unit of units) {
          taken -= unit.length;
          yield unit;
        }
        // Always advance: with a fractional `end`, the units are shorter than the range, and the loop would never end.
        at = stop;
      }
    } finally {
      window?.give(taken);
    }
  }

  /** The correct content of the shard `index`, unit by unit, from other shards. */
  async *rebuild(index: number): AsyncGenerator<Buffer, void, undefined> {
    this.#lost.add(index);
    const shardBytes = measureShard(this.#blob.stored, this.#code.data);
    for (let at = 0; at < shardBytes;) {
      const stripe = this.#locate(Math.min(this.#blob.stored - 1, at * this.#code.data));
      yield await this.#reconstruct(index, stripe, 0, stripe.unitBytes);
      at += stripe.unitBytes;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const opening of this.#opening.values()) {
      opening.then(
        (open) => open.close(),
        () => undefined,
      );
    }
  }

  #locate(offset: number): Stripe {
    return locateStripe(this.#blob.stored, this.#code.data, offset);
  }

  // Reads the rest of a stripe ahead if there is memory for it now.
  #readStripe(at: number, end: number, window: ReadWindow | undefined): StripeRead | undefined {
    if (limitRead(window) < FRAME_BYTES) return undefined;
    const stop = this.#findStop(at, end, Infinity);
    return window?.tryTake(stop - at) === false ? undefined : this.#begin(at, stop);
  }

  #findStop(at: number, end: number, bytesMax: number): number {
    const { start, dataBytes } = this.#locate(at);
    return Math.min(end, start + dataBytes, at + bytesMax);
  }

  #begin(at: number, stop: number): StripeRead {
    const units = this.#readUnits(this.#locate(at), at, stop);
    // The read may fail before it is awaited; the consumer gets the error when it awaits the read.
    units.catch(() => undefined);
    return { stop, units };
  }

  // The data bytes `from` to `to` of the body, all in this stripe, one buffer per unit.
  #readUnits(stripe: Stripe, from: number, to: number): Promise<Buffer[]> {
    const first = Math.floor((from - stripe.start) / stripe.unitBytes);
    const last = Math.floor((to - 1 - stripe.start) / stripe.unitBytes);
    return Promise.all(
      Array.from({ length: last - first + 1 }, (_, count) => {
        const unit = first + count;
        const unitStart = stripe.start + unit * stripe.unitBytes;
        const begin = Math.max(from - unitStart, 0);
        const end = Math.min(to - unitStart, stripe.unitBytes);
        return this.#readUnit(unit, stripe, begin, end);
      }),
    );
  }

  async #readUnit(shard: number, stripe: Stripe, begin: number, end: number): Promise<Buffer> {
    const bytes = await this.#tryShard(shard, stripe, begin, end);
    return bytes ?? this.#reconstruct(shard, stripe, begin, end);
  }

  async #reconstruct(shard: number, stripe: Stripe, begin: number, end: number): Promise<Buffer> {
    const present = new Map<number, Buffer>();
    const candidates = this.#drives.map((_, index) => index).filter((index) => index !== shard);
    while (present.size < this.#code.data) {
      const wanted = candidates.splice(0, this.#code.data - present.size);
      if (wanted.length === 0) {
        const isDriveAway = this.#drives.some((drive) => !drive.isPresent);
        throw new StoreError(
          // The data is back with the drive.
          isDriveAway ? "ServiceUnavailable" : "InternalError",
          `Too few shards are readable (blob ${this.#blob.id.toString(16)})`,
        );
      }
      const found = await Promise.all(
        wanted.map((index) => this.#tryShard(index, stripe, begin, end)),
      );
      for (const [index, bytes] of found.entries()) {
        if (bytes !== undefined) present.set(wanted[index]!, bytes);
      }
    }
    const bytes = Buffer.allocUnsafeSlow(end - begin);
    this.#code.reconstruct(shard, present, bytes);
    return bytes;
  }

  async #tryShard(
    shard: number,
    stripe: Stripe,
    begin: number,
    end: number,
  ): Promise<Buffer | undefined> {
    const drive = this.#drives[shard]!;
    if (this.#lost.has(shard) || !drive.isPresent) return undefined;
    try {
      const open = await this.#use(shard);
      const pieces: Buffer[] = [];
      const { shardStart } = stripe;
      // Reads of a few blocks do not include the blocks after them.
      const window = end - begin <= ROOM_TAKEN.bytes ? ROOM_TAKEN : undefined;
      const reading = open.read(shardStart + begin, shardStart + end, window);
      for await (const piece of reading) pieces.push(piece);
      return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    } catch {
      // Whatever the error, this read continues without the shard, and the healer checks the shard.
      this.#lost.add(shard);
      if (drive.isPresent) this.#onDamage({ blob: this.#blob, slot: drive.slot });
      return undefined;
    }
  }

  #use(shard: number): Promise<OpenBlob> {
    let opening = this.#opening.get(shard);
    if (opening === undefined) {
      const drive = this.#drives[shard]!;
      opening = drive.isPresent
        ? drive.reader.open({
            ...this.#blob,
            stored: measureShard(this.#blob.stored, this.#code.data),
          })
        : Promise.reject(new Error(drive.absence));
      opening.catch(() => undefined);
      this.#opening.set(shard, opening);
    }
    return opening;
  }
}
