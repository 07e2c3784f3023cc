// What the index remembers of drives, inside the writer: which of them have missed something.
import type { WriterContext } from "./writer-context.ts";

/** Notes whether a drive lacks something that it is to have. */
export interface MarkDriveOperation {
  type: "markDrive";
  slot: number;
  isBehind: boolean;
}

/** Applies the mark. */
export function applyMarkDrive(
  context: WriterContext,
  { slot, isBehind }: MarkDriveOperation,
): null {
  context.markDrive(slot, isBehind);
  return null;
}
