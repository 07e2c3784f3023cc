// A body on its way to several drives: stripe by stripe cut into units, with parity, one file a drive.
import { isFull, type DriveSet } from "../drive/drive-set.ts";
import type { ReedSolomon } from "../erasure/reed-solomon.ts";
import { StoreError } from "../store-error.ts";
import { translateDiskError, type BlobWriter, type NewBlob } from "./blob-writer.ts";
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";
import { ShardFile } from "./shard-file.ts";
import { locateStripe, measureShard, type ShardDescription } from "./shard-layout.ts";
import type { StagingBudget } from "./staging-budget.ts";
import type { BlobPlace } from "./types.ts";

/** What shard writers share. */
export interface ShardEnvironment {
  drives: DriveSet;
  code: ReedSolomon;
  budget: StagingBudget;
  /** Unit buffers that may be used again. */
  frames: Buffer[];
}

const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);
const FRAMES_KEPT = 32;

/**
 * Writes the shards of one body. The memory of a whole stripe is taken at once and kept to the end, so that bodies never
 * wait for each other in a ring. A drive that fails is left out as long as enough are left.
 */
export class ShardWriter implements BlobWriter {
  readonly #env: ShardEnvironment;
  readonly #blob: NewBlob;
  readonly #files: (ShardFile | undefined)[];
  readonly #shards: number;
  readonly #headBytes: number;
  readonly #budgetBytes: number;
  #units: Buffer[] | undefined;
  // Of the body, and of its current stripe.
  #taken = 0;
  #filled = 0;
  #state: "open" | "sealed" | "discarded" = "open";

  constructor(environment: ShardEnvironment, blob: NewBlob) {
    this.#env = environment;
    this.#blob = blob;
    const { data, parity } = environment.code;
    this.#shards = data + parity;
    this.#budgetBytes = this.#shards * FRAME_BUFFER_BYTES;
    const stored = measureShard(blob.stored, data);
    const files = environment.drives
      .rankShards(blob.id)
      .map(
        (drive, index) =>
          new ShardFile(drive, blob.id, stored, describeShard(blob, index, environment.code)),
      );
    this.#headBytes = files[0]!.headBytes;
    this.#files = files.map((file) => (file.drive.isPresent ? file : undefined));
    this.#requireEnough();
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#units === undefined) {
      const waiting = this.#env.budget.take(this.#budgetBytes);
      if (waiting !== undefined) {
        return this.#beginLater(waiting, Buffer.from(chunk));
      }
      this.#takeUnits();
    }
    return this.#fill(chunk);
  }

  async #beginLater(waiting: Promise<void>, chunk: Uint8Array): Promise<void> {
    await waiting;
    if (this.#state !== "open") {
      this.#env.budget.give(this.#budgetBytes);
      return;
    }
    this.#takeUnits();
    await this.#fill(chunk);
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    try {
      if (this.#filled > 0) await this.#writeStripe();
      await this.#forEach((file) => file.publish(summary));
      this.#state = "sealed";
      const extent = this.#files.reduce((sum, file) => sum + (file?.extent ?? 0), 0);
      return { place: { kind: "file", position: this.#headBytes }, extent };
    } catch (error) {
      await this.discard();
      throw translateDiskError(error);
    } finally {
      this.#giveUnits();
    }
  }

  async discard(): Promise<void> {
    if (this.#state === "discarded") return;
    this.#state = "discarded";
    this.#giveUnits();
    await Promise.all(this.#files.map(async (file) => file?.discard()));
  }

  // Copies what fits into the stripe; where that fills it, the rest waits for the disks.
  #fill(chunk: Uint8Array): Promise<void> | undefined {
    const { data } = this.#env.code;
    let rest = chunk;
    while (rest.length > 0) {
      const stripe = locateStripe(this.#blob.stored, data, this.#taken);
      const unit = Math.floor(this.#filled / stripe.unitBytes);
      const at = this.#filled % stripe.unitBytes;
      const count = Math.min(rest.length, stripe.unitBytes - at, stripe.dataBytes - this.#filled);
      this.#units![unit]!.set(rest.length === count ? rest : rest.subarray(0, count), at);
      this.#filled += count;
      this.#taken += count;
      rest = rest.subarray(count);
      if (this.#filled < stripe.dataBytes || this.#taken === this.#blob.stored) continue;
      const left = Buffer.from(rest);
      return this.#writeStripe().then(() => (left.length > 0 ? this.#fill(left) : undefined));
    }
    return undefined;
  }

  async #writeStripe(): Promise<void> {
    const { code } = this.#env;
    const { dataBytes, unitBytes } = locateStripe(this.#blob.stored, code.data, this.#taken - 1);
    const units = this.#units!;
    for (let unit = 0; unit < code.data; unit += 1) {
      const inUnit = Math.max(0, Math.min(unitBytes, dataBytes - unit * unitBytes));
      units[unit]!.fill(0, inUnit, unitBytes);
    }
    const views = units.map((unit) => unit.subarray(0, unitBytes));
    code.encode(views.slice(0, code.data), views.slice(code.data));
    this.#filled = 0;
    try {
      await this.#forEach((file, index) => file.write(units[index]!, unitBytes));
    } catch (error) {
      await this.discard();
      throw translateDiskError(error);
    }
  }

  // On all drives at once; one that fails is left out from then on, a full one fails the body.
  async #forEach(work: (file: ShardFile, index: number) => Promise<void>): Promise<void> {
    const { drives } = this.#env;
    const results = await Promise.allSettled(
      this.#files.map(async (file, index) => {
        if (file === undefined) return;
        // A drive that went and came back has lost what was staged.
        if (file.isLost) this.#files[index] = undefined;
        else await work(file, index);
      }),
    );
    const full = results.find((result) => result.status === "rejected" && isFull(result.reason));
    if (full?.status === "rejected") throw full.reason;
    for (const [index, result] of results.entries()) {
      const file = this.#files[index];
      if (result.status === "fulfilled" || file === undefined) continue;
      if (!file.isLost) drives.fail(file.drive, describeReason(result.reason));
      this.#files[index] = undefined;
      void file.discard();
    }
    this.#requireEnough();
  }

  #requireEnough(): void {
    const left = this.#files.filter((file) => file !== undefined).length;
    if (left >= this.#env.code.data) return;
    throw new StoreError("ServiceUnavailable", "Too few drives are there to store this");
  }

  #takeUnits(): void {
    const { frames } = this.#env;
    this.#units = Array.from(
      { length: this.#shards },
      () => frames.pop() ?? Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES),
    );
  }

  #giveUnits(): void {
    const units = this.#units;
    if (units === undefined) return;
    this.#units = undefined;
    this.#env.budget.give(this.#budgetBytes);
    for (const unit of units) {
      if (this.#env.frames.length < FRAMES_KEPT) this.#env.frames.push(unit);
    }
  }
}

/** The description of one shard: the body's, and which shard it is. */
export function describeShard(
  { description, stored }: Pick<NewBlob, "description" | "stored">,
  index: number,
  { data, parity }: Pick<ReedSolomon, "data" | "parity">,
): object {
  const shard: ShardDescription = { index: String(index).padStart(2, "0"), data, parity, stored };
  return { ...(description as object), shard };
}

function describeReason(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
