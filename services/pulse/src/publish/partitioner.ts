// Which partition a message goes to.
import { fnv1a } from "./fnv1a.ts";

/** Same key, same partition (FNV-1a); without a key the partitions take turns. */
export class Partitioner {
  #turn = 0;

  choose(key: Buffer | null, partitions: number): number {
    if (partitions === 1) return 0;
    if (key !== null) return fnv1a(key) % partitions;
    this.#turn = (this.#turn + 1) % 0x7fff_ffff;
    return this.#turn % partitions;
  }
}
