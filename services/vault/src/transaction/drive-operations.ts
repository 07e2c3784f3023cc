// Marks of incomplete drives in the index, inside the writer.
import type { WriterContext } from "./writer-context.ts";

/** Marks a drive as incomplete or complete. */
export interface MarkDriveOperation {
  type: "markDrive";
  slot: number;
  isBehind: boolean;
}

export function applyMarkDrive(
  context: WriterContext,
  { slot, isBehind }: MarkDriveOperation,
): null {
  context.markDrive(slot, isBehind);
  return null;
}
