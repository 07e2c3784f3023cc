// Long work in slices: requests are served between them.
import { setImmediate as nextTurn } from "node:timers/promises";

/** How long the event loop waits for one slice, in ms. */
const SLICE_MS = 4;
/** Items between two looks at the clock. */
const ITEMS_PER_LOOK = 16;

/** Does `work` for each item in order; the event loop turns whenever a slice is over. Rejects with what `work` throws. */
export async function forEachInSlices<T>(
  items: Iterable<T>,
  work: (item: T) => void,
): Promise<void> {
  let endMs = performance.now() + SLICE_MS;
  let done = 0;
  for (const item of items) {
    work(item);
    if (++done % ITEMS_PER_LOOK !== 0 || performance.now() < endMs) continue;
    await nextTurn();
    endMs = performance.now() + SLICE_MS;
  }
}
