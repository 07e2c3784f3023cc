// Damage found by reads: which offsets cannot be read, and where reading can resume.
import type { Partition } from "../partition/partition.ts";
import type { Damage } from "../types.ts";
import { DamagedError } from "./damaged-error.ts";

/** Maximum number of damaged ranges kept; a dropped one is found again by the next read. */
const RANGES_MAX = 1000;

/** The damaged ranges of all partitions. */
export class DamageRegistry {
  readonly #ranges: { partition: Partition; damage: Damage }[] = [];
  /** Ranges found since startup. */
  found = 0;

  get all(): Damage[] {
    return this.#ranges.filter(({ partition }) => partition.live).map(({ damage }) => damage);
  }

  /** Throws `DamagedError` if the offset is in a known range. */
  check(partition: Partition, offset: number): void {
    if (this.#ranges.length === 0) return;
    const known = this.#ranges.find(
      (range) =>
        range.partition === partition &&
        range.damage.fromOffset <= offset &&
        offset < range.damage.resumeOffset,
    );
    if (known !== undefined) throw new DamagedError(known.damage);
  }

  /** The position after the last known damage of a file that ends at or before the offset. */
  findResume(
    partition: Partition,
    file: string,
    offset: number,
  ): { position: number; offset: number } | undefined {
    let found: { position: number; offset: number } | undefined;
    for (const { partition: damaged, damage } of this.#ranges) {
      if (damaged !== partition || damage.file !== file || damage.resumeOffset > offset) continue;
      const position = damage.position + damage.length;
      if (position > (found?.position ?? -1)) found = { position, offset: damage.resumeOffset };
    }
    return found;
  }

  /** Returns false if the range is already known. */
  add(partition: Partition, damage: Damage): boolean {
    const isKnown = this.#ranges.some(
      (range) =>
        range.partition === partition &&
        range.damage.fromOffset === damage.fromOffset &&
        range.damage.resumeOffset === damage.resumeOffset,
    );
    if (isKnown) return false;
    this.found++;
    if (this.#ranges.length >= RANGES_MAX) this.#ranges.shift();
    this.#ranges.push({ partition, damage });
    return true;
  }

  /** Drops ranges below the log start, which can no longer be read. */
  forgetBelow(partition: Partition, logStart: number): void {
    for (let at = this.#ranges.length - 1; at >= 0; at--) {
      const range = this.#ranges[at]!;
      if (range.partition === partition && range.damage.resumeOffset <= logStart) {
        this.#ranges.splice(at, 1);
      }
    }
  }
}

/** True if a failed read means that stored bytes are missing or wrong. */
export function isDamage(error: unknown): error is Error {
  const { code } = error as NodeJS.ErrnoException;
  return code === "corrupt" || code === "ENOENT" || code === "EIO";
}
