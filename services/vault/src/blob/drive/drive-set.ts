// The drives of a store: their presence, and the placement of data.
import { createHash } from "node:crypto";
import type { Drive } from "./drive.ts";

/** Receives lost drives. */
export interface DriveSetListener {
  /** A drive has failed or was removed. */
  onAbsent(drive: Drive, reason: string): void;
}

/**
 * All drives of a store, by slot. Data is placed by rendezvous hashing (Thaler and Ravishankar, 1996): the order of the
 * slots for an id never changes, regardless of the drives in them.
 */
export class DriveSet {
  readonly all: readonly Drive[];
  /** Numbers of data and parity shards of large bodies; 1 and 0 on a single drive. */
  readonly data: number;
  readonly parity: number;
  listener: DriveSetListener | undefined;

  constructor(all: readonly Drive[], data: number, parity: number) {
    this.all = all;
    this.data = data;
    this.parity = parity;
  }

  /** True if large bodies are cut into shards. */
  get isErasureCoded(): boolean {
    return this.all.length > 1;
  }

  get present(): readonly Drive[] {
    return this.all.filter((drive) => drive.isPresent);
  }

  /** All drives in the order of preference for an id. */
  rank(id: number): Drive[] {
    if (this.all.length === 1) return [...this.all];
    return this.all
      .map((drive) => ({ drive, weight: weigh(drive.slot, id) }))
      .sort((a, b) => b.weight - a.weight || a.drive.slot - b.drive.slot)
      .map(({ drive }) => drive);
  }

  /** The drives of a body's shards, by shard. */
  rankShards(id: number): Drive[] {
    return this.rank(id).slice(0, this.data + this.parity);
  }

  /** The drives that should have a segment. */
  rankCopies(segment: number): Drive[] {
    return this.rank(segment).slice(0, this.parity + 1);
  }

  /** A drive has failed: it is left out from now on. */
  fail(drive: Drive, reason: string): void {
    if (!drive.isPresent) return;
    drive.absence = reason;
    drive.losses += 1;
    void drive.files.close();
    this.listener?.onAbsent(drive, reason);
  }
}

/** True if an error means that a drive is full, rather than broken. */
export function isFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOSPC" || code === "EDQUOT" || code === "InsufficientStorage";
}

function weigh(slot: number, id: number): number {
  return createHash("md5").update(`${slot}/${id}`).digest().readUInt32BE(0);
}
