// Splits long work into slices so that requests are served between them.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Length of one slice in ms. */
const SLICE_MS = 2;
/** Items between two clock readings. */
const ITEMS_PER_CHECK = 16;

/** Calls `work` for each item in order and yields to the event loop after each slice. Rejects with errors of `work`. */
export async function forEachInSlices<T>(
  items: Iterable<T>,
  work: (item: T) => void,
): Promise<void> {
  let endMs = performance.now() + SLICE_MS;
  let done = 0;
  for (const item of items) {
    work(item);
    if (++done % ITEMS_PER_CHECK !== 0 || performance.now() < endMs) continue;
    await nextTurn();
    endMs = performance.now() + SLICE_MS;
  }
}
