// Handles damage found by a read.
import type { Partition } from "../partition/partition.ts";
import type { Damage, LogEvent } from "../types.ts";
import type { QuarantineStore } from "./quarantine.ts";

/**
 * Reports damage and copies the damaged bytes to the quarantine. At the start of a partition the range then counts as
 * deleted, so that readers start after it (`skip`); elsewhere reading it fails until the log is repaired or the range is
 * deleted. Does not reject.
 */
export async function setDamageAside(
  { quarantine, onEvent }: { quarantine: QuarantineStore; onEvent: (event: LogEvent) => void },
  partition: Partition,
  damage: Damage,
  skip: () => Promise<unknown>,
): Promise<void> {
  const { file, position, length, reason, fromOffset } = damage;
  onEvent({ kind: "damaged", damage });
  try {
    await quarantine.copy({ file, position, length, reason });
    if (fromOffset <= partition.logStart && partition.live) await skip();
  } catch (error) {
    onEvent({ kind: "quarantine-failed", error: error as Error, file });
  }
}
