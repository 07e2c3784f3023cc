// The error of a read at a damaged offset.
import { LogError } from "../errors.ts";
import type { Damage } from "../types.ts";

/** `corrupt`: the requested offset is damaged. Reading can resume at `damage.resumeOffset`. */
export class DamagedError extends LogError {
  readonly damage: Damage;

  constructor(damage: Damage) {
    const { topic, partition, fromOffset, resumeOffset } = damage;
    super(
      "corrupt",
      `offsets ${fromOffset} to ${resumeOffset - 1} of ${topic}/${partition} are damaged`,
    );
    this.damage = damage;
  }
}
