// Looks for the objects of a log, for checks and repairs.
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ColdStore } from "../cold-store.ts";
import { extentEnd, type Extent } from "../partition/partition.ts";

const PARALLEL_HEADS = 16;

/** The store for a check. `isRead`: all batches are read and verified, otherwise only sizes are compared. */
export interface ObjectCheck {
  store: ColdStore;
  isRead: boolean;
}

/** The answers of the store about the objects of a log. */
export interface FoundObjects extends ObjectCheck {
  /** The reason why an object cannot be used; `undefined` if it has the size of its extent. */
  problemOf: (extent: Extent) => string | undefined;
}

/** Asks for the size of each object. Rejects with a `ColdStoreError` if the store fails. */
export async function findObjects(
  catalogue: Catalogue,
  check: ObjectCheck | undefined,
): Promise<FoundObjects | undefined> {
  if (check === undefined) return undefined;
  const sizes = new Map<string, number | undefined>();
  for (const { extents } of catalogue.partitions()) {
    for (const { object } of extents) if (object !== undefined) sizes.set(object, undefined);
  }
  const queue = [...sizes.keys()].values();
  const lane = async (): Promise<void> => {
    for (const object of queue) sizes.set(object, await check.store.head(object));
  };
  await Promise.all(Array.from({ length: PARALLEL_HEADS }, lane));
  return {
    ...check,
    problemOf(extent) {
      const bytes = sizes.get(extent.object!);
      if (bytes === undefined) return "missing in the object store";
      const expected = extentEnd(extent);
      return bytes === expected ? undefined : `${bytes} bytes in the object store, not ${expected}`;
    },
  };
}
