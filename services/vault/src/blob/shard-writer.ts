// Writes a body to several drives: cut into stripes of units, with parity, one file per drive.
import { isFull, type DriveSet } from "./drive/drive-set.ts";
import type { ReedSolomon } from "./erasure/reed-solomon.ts";
import { StoreError } from "../model/store-error.ts";
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";
import { ShardFile } from "./shard-file.ts";
import { locateStripe, measureShard, type ShardDescription, type Stripe } from "./shard-layout.ts";
import {
  StagedWriter,
  translateDiskError,
  type BlobWriter,
  type NewBlob,
} from "./staged-writer.ts";
import type { StagingBudget } from "./staging-budget.ts";
import type { BlobPlace } from "../model/blob.ts";

/** Parts that shard writers share. */
export interface ShardEnvironment {
  drives: DriveSet;
  code: ReedSolomon;
  budget: StagingBudget;
  /** Reusable unit buffers. */
  frames: Buffer[];
}

const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);
const FRAMES_KEPT = 32;

/** Writes the shards of one body. A failing drive is left out as long as enough drives remain. */
export class ShardWriter extends StagedWriter implements BlobWriter {
  protected readonly memoryBytes: number;
  readonly #env: ShardEnvironment;
  readonly #blob: NewBlob;
  readonly #files: (ShardFile | undefined)[];
  readonly #shards: number;
  readonly #headBytes: number;
  #units: Buffer[] | undefined;
  #stripe: Stripe;
  #state: "open" | "sealed" | "discarded" = "open";

  constructor(environment: ShardEnvironment, blob: NewBlob) {
    const { drives, budget, code } = environment;
    const { present } = drives;
    super({
      budget,
      tenant: blob.tenant,
      spillPath: () => present[blob.id % present.length]!.folders.spilled(blob.id),
    });
    this.#env = environment;
    this.#blob = blob;
    this.#shards = code.data + code.parity;
    this.memoryBytes = this.#shards * FRAME_BUFFER_BYTES;
    this.#stripe = locateStripe(blob.stored, code.data, 0);
    const stored = measureShard(blob.stored, code.data);
    const files = drives
      .rankShards(blob.id)
      .map(
        (drive, index) => new ShardFile(drive, blob.id, stored, describeShard(blob, index, code)),
      );
    this.#headBytes = files[0]!.headBytes;
    this.#files = files.map((file) => (file.drive.isPresent ? file : undefined));
    this.#requireEnough();
  }

  protected get batchBytes(): number {
    return this.#stripe.dataBytes;
  }

  protected allocate(): void {
    const { frames } = this.#env;
    this.#units = Array.from(
      { length: this.#shards },
      () => frames.pop() ?? Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES),
    );
  }

  // Unit by unit.
  protected fill(bytes: Uint8Array, at: number): void {
    const { unitBytes } = this.#stripe;
    let rest = bytes;
    while (rest.length > 0) {
      const filled = at + bytes.length - rest.length;
      const inUnit = filled % unitBytes;
      const count = Math.min(rest.length, unitBytes - inUnit);
      const unit = this.#units![Math.floor(filled / unitBytes)]!;
      unit.set(rest.length === count ? rest : rest.subarray(0, count), inUnit);
      rest = rest.subarray(count);
    }
  }

  protected view(bytes: number): Uint8Array[] {
    const { unitBytes } = this.#stripe;
    return this.#units!
      .slice(0, Math.ceil(bytes / unitBytes))
      .map((unit, index) => unit.subarray(0, Math.min(unitBytes, bytes - index * unitBytes)));
  }

  protected drop(): void {
    for (const unit of this.#units!) {
      if (this.#env.frames.length < FRAMES_KEPT) this.#env.frames.push(unit);
    }
    this.#units = undefined;
  }

  protected flush(): Promise<void> | undefined {
    const { start, dataBytes } = this.#stripe;
    return start + dataBytes === this.#blob.stored ? undefined : this.#writeNext();
  }

  async seal(summary: unknown): Promise<{ place: BlobPlace; extent: number }> {
    try {
      if ((await this.collectLast()) > 0) await this.#writeStripe();
      await this.#forEach((file) => file.publish(summary));
      this.#state = "sealed";
      const extent = this.#files.reduce((sum, file) => sum + (file?.extent ?? 0), 0);
      return { place: { kind: "file", position: this.#headBytes }, extent };
    } catch (error) {
      await this.discard();
      throw translateDiskError(error);
    } finally {
      await this.end();
    }
  }

  async discard(): Promise<void> {
    if (this.#state === "discarded") return;
    this.#state = "discarded";
    await this.end();
    await Promise.all(this.#files.map(async (file) => file?.discard()));
  }

  async #writeNext(): Promise<void> {
    await this.#writeStripe();
    const { start, dataBytes } = this.#stripe;
    this.#stripe = locateStripe(this.#blob.stored, this.#env.code.data, start + dataBytes);
    this.restart();
  }

  async #writeStripe(): Promise<void> {
    const { code } = this.#env;
    const { dataBytes, unitBytes } = this.#stripe;
    const units = this.#units!;
    for (let unit = 0; unit < code.data; unit += 1) {
      const inUnit = Math.max(0, Math.min(unitBytes, dataBytes - unit * unitBytes));
      units[unit]!.fill(0, inUnit, unitBytes);
    }
    const views = units.map((unit) => unit.subarray(0, unitBytes));
    code.encode(views.slice(0, code.data), views.slice(code.data));
    try {
      await this.#forEach((file, index) => file.write(units[index]!, unitBytes));
    } catch (error) {
      throw translateDiskError(error);
    }
  }

  // On all drives in parallel. A failing drive is left out from then on; a full one fails the body.
  async #forEach(work: (file: ShardFile, index: number) => Promise<void>): Promise<void> {
    const { drives } = this.#env;
    const results = await Promise.allSettled(
      this.#files.map(async (file, index) => {
        if (file === undefined) return;
        // A drive that disappeared and returned has lost its staged file.
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
    throw new StoreError("ServiceUnavailable", "Too few drives are present to store this");
  }
}

/** The description of one shard: that of the body, and the index of the shard. */
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
