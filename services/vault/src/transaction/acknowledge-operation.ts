// Removal of delivered events from the outbox, inside the writer.
import type { WriterContext } from "./writer-context.ts";

/** Removes events. */
export interface AcknowledgeEventsOperation {
  type: "acknowledgeEvents";
  ids: readonly number[];
}

/** Applies the removal of events. */
export function applyAcknowledgeEvents(
  context: WriterContext,
  { ids }: AcknowledgeEventsOperation,
): null {
  for (const id of ids) {
    const { changes } = context.sql("delete from events where id = ?").run(id);
    context.totals.pendingEvents -= Number(changes);
  }
  return null;
}
