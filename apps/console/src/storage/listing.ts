// The listing of a folder, page by page: rows are only added at the end, so that nothing moves that somebody reads.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { ApiFailure } from "../api/api.ts";
import { toFailure } from "../view/load.ts";
import { listObjects, type StoredObject } from "./objects.ts";

/** Rows that the page keeps; beyond them a prefix must narrow the list. */
const ROWS_MAX = 100_000;

/** A folder or an object. `id` is its key or prefix. */
export type ListRow =
  | { kind: "folder"; id: string }
  | { kind: "object"; id: string; object: StoredObject };

/** State of a listing. */
interface Listing {
  rows: readonly ListRow[];
  /** True if there are more rows in storage. */
  hasMore: boolean;
  isLoading: boolean;
  failure: ApiFailure | undefined;
}

/** Loads a folder: keys that begin with `prefix`, up to the next `/`. */
export function useListing(bucket: string, prefix: string) {
  const state = useMemo(() => createListing(bucket, prefix), [bucket, prefix]);
  useEffect(() => {
    void state.reload();
    return () => state.stop();
  }, [state]);
  return state;
}

function createListing(bucket: string, prefix: string) {
  const listing = signal<Listing>({
    rows: [],
    hasMore: false,
    isLoading: true,
    failure: undefined,
  });
  let cursor: string | undefined;
  let current: AbortController | undefined;

  const load = async (before: readonly ListRow[]): Promise<void> => {
    current?.abort();
    const mine = (current = new AbortController());
    listing.value = { ...listing.value, isLoading: true };
    try {
      const query = { prefix, delimiter: "/", cursor };
      const page = await listObjects(bucket, query, mine.signal);
      if (current !== mine) return;
      cursor = page.next_cursor ?? undefined;
      const rows = [...before, ...page.prefixes.map(toFolder), ...page.items.map(toObject)];
      const hasMore = cursor !== undefined;
      listing.value = { rows, hasMore, isLoading: false, failure: undefined };
    } catch (error) {
      if (current !== mine) return;
      listing.value = { ...listing.value, isLoading: false, failure: toFailure(error) };
    }
  };

  return {
    listing,
    /** Loads the next page, if there is one and none is being loaded. */
    loadMore: (): void => {
      const { rows, hasMore, isLoading, failure } = listing.value;
      if (!hasMore || isLoading || failure !== undefined || rows.length >= ROWS_MAX) return;
      void load(rows);
    },
    reload: (): Promise<void> => {
      cursor = undefined;
      return load([]);
    },
    stop: (): void => {
      current?.abort();
      current = undefined;
    },
  };
}

function toFolder(prefix: string): ListRow {
  return { kind: "folder", id: prefix };
}

function toObject(object: StoredObject): ListRow {
  return { kind: "object", id: object.key, object };
}
