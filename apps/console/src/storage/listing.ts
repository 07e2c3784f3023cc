// The listing of a folder as a signal.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { toFailure } from "../view/load.ts";
import { FolderList, type FolderRow } from "./folder-list.ts";
import { listObjects, type StoredObject } from "./objects.ts";

/** A folder or an object in a list. */
export type ListRow = FolderRow<StoredObject>;

/** Loads a folder: keys that begin with `prefix`, up to the next `/`. `withDeleted` adds those with a delete marker. */
export function useListing(bucket: string, prefix: string, withDeleted: boolean) {
  const { state, ...methods } = useMemo(
    () => openFolder(bucket, prefix, withDeleted),
    [bucket, prefix, withDeleted],
  );
  useEffect(() => {
    void methods.reload();
    return methods.stop;
  }, [state]);
  const { error, ...shown } = state.value;
  return { ...shown, ...methods, failure: error === undefined ? undefined : toFailure(error) };
}

function openFolder(bucket: string, prefix: string, withDeleted: boolean) {
  const query = { prefix, delimiter: "/", ...(withDeleted ? { versions: true } : {}) };
  const list = new FolderList<StoredObject>(
    async (cursor, abort) => {
      const page = await listObjects(bucket, { ...query, cursor }, abort);
      return { ...page, items: page.items.filter((one) => one.is_latest !== false) };
    },
    (changed) => {
      state.value = changed;
    },
  );
  const state = signal(list.state);
  return {
    state,
    /** Loads the next page, if there is one. */
    loadMore: () => void list.loadMore(),
    /** Loads the list again, as far as it was loaded. */
    reload: () => list.reload(),
    stop: () => list.stop(),
  };
}
