// Selects the partition of a message.
import { fnv1a } from "./fnv1a.ts";

/** Hashes the key (FNV-1a); messages without a key are distributed round-robin. */
export class Partitioner {
  #turn = 0;

  choose(key: Buffer | null, partitions: number): number {
    if (partitions === 1) return 0;
    if (key !== null) return fnv1a(key) % partitions;
    this.#turn = (this.#turn + 1) % 0x7fff_ffff;
    return this.#turn % partitions;
  }
}
