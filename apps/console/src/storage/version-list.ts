// The versions of an object as far as they were read. A change reads them again as far as before, so that users stay where they are.

/** Versions that are read; beyond them S3's ListObjectVersions reaches all. */
export const VERSIONS_MAX = 10_000;
/** Versions of one request, at least. */
const PAGE = 200;
const PAGE_MAX = 1_000;

/** Versions of a key, the newest first. */
export interface KnownVersions<Version> {
  versions: readonly Version[];
  /** Continues after them; undefined if these are all. */
  next: string | undefined;
}

/** The start of each list. */
export const NO_VERSIONS: KnownVersions<never> = { versions: [], next: undefined };

/** Reads a page of the versions of all keys that begin with the key, in order. */
type ReadPage<Version> = (
  cursor: string | undefined,
  limit: number,
) => Promise<{ items: readonly Version[]; next_cursor: string | null }>;

/** Reads on from known versions until there are `count` of them, or all. */
export async function readVersions<Version extends { key: string }>(
  key: string,
  known: KnownVersions<Version>,
  count: number,
  readPage: ReadPage<Version>,
): Promise<KnownVersions<Version>> {
  const versions = [...known.versions];
  let { next } = known;
  const wanted = Math.min(count, VERSIONS_MAX);
  do {
    const missing = Math.ceil((wanted - versions.length) / PAGE) * PAGE;
    const page = await readPage(next, Math.min(Math.max(missing, PAGE), PAGE_MAX));
    const own = page.items.filter((one) => one.key === key);
    versions.push(...own);
    // The key's own versions come first: other keys on the page mean that these are all.
    next = own.length < page.items.length ? undefined : (page.next_cursor ?? undefined);
  } while (next !== undefined && versions.length < wanted);
  return { versions, next };
}

/** True if there are more versions, which can be read. */
export function canReadMore({ versions, next }: KnownVersions<unknown>): boolean {
  return next !== undefined && versions.length < VERSIONS_MAX;
}
