// Pages of all listings with various keys, prefixes, delimiters and sizes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-prefixes.html
import assert from "node:assert/strict";
import { casesOf, type CaseRow, type Scene } from "../case.ts";
import type { Element } from "../document.ts";
import { encode } from "../signature.ts";

/** Letters of one to four bytes, some of which are also delimiters. */
const LETTERS = ["a", "b", "-", "/", "é", "日", "\uffee", "😀"];
const DELIMITERS = ["", "/", "/b", "é", "😀", "a-"];
const PREFIXES = ["", "a", "/", "😀", "aa"];
const PAGES = [1, 2, 5];

/** Keys of one and two letters, and a few of three. */
const KEYS = [
  ...LETTERS,
  ...LETTERS.flatMap((first) => ["a", "/", "b", "😀"].map((second) => first + second)),
  ...LETTERS.flatMap((first) => [`${first}/b`, `${first}a-`, `a${first}/`]),
];

interface Listing {
  /** The listed items, by the name of their elements. */
  rows: string;
  query: string;
  sizeName: string;
  /** Creates an item with a key. */
  make: (scene: Scene, key: string) => Promise<unknown>;
  /** Returns the parameters of the next page. */
  next: (page: Element, keys: readonly string[]) => string;
}

const LISTINGS: Record<string, Listing> = {
  ListObjects: {
    rows: "Contents",
    query: "",
    sizeName: "max-keys",
    make: ({ put }, key) => put(encode(key)),
    next: (page, keys) => `&marker=${page.get("NextMarker") ?? encode(keys.at(-1)!)}`,
  },
  ListObjectsV2: {
    rows: "Contents",
    query: "list-type=2&",
    sizeName: "max-keys",
    make: ({ put }, key) => put(encode(key)),
    next: (page) => `&continuation-token=${encode(page.get("NextContinuationToken")!)}`,
  },
  ListObjectVersions: {
    rows: "Version",
    query: "versions&",
    sizeName: "max-keys",
    make: ({ put }, key) => put(encode(key)),
    next: (page) => {
      const id = page.get("NextVersionIdMarker");
      const behind = id === undefined ? "" : `&version-id-marker=${id}`;
      return `&key-marker=${page.get("NextKeyMarker")!}${behind}`;
    },
  },
  ListMultipartUploads: {
    rows: "Upload",
    query: "uploads&",
    sizeName: "max-uploads",
    make: ({ must }, key) => must("POST", `/${encode(key)}?uploads`),
    next: (page) => {
      const id = page.get("NextUploadIdMarker") ?? "";
      const behind = id === "" ? "" : `&upload-id-marker=${id}`;
      return `&key-marker=${page.get("NextKeyMarker")!}${behind}`;
    },
  },
};

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The expected items of all pages. */
function fold(prefix: string, delimiter: string) {
  const keys: string[] = [];
  const prefixes = new Set<string>();
  for (const key of [...new Set(KEYS)].sort(compareBytes)) {
    if (!key.startsWith(prefix)) continue;
    const at = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    if (at < 0) keys.push(key);
    else prefixes.add(key.slice(0, at + delimiter.length));
  }
  return { keys, prefixes: [...prefixes] };
}

async function readPages({ must }: Scene, listing: Listing, query: string, size: number) {
  const found = { keys: [] as string[], prefixes: [] as string[] };
  let behind = "";
  for (;;) {
    const { document } = await must("GET", `?${listing.query}${query}${behind}`);
    const keys = document.texts(`${listing.rows}/Key`).map(decodeURIComponent);
    const prefixes = document.texts("CommonPrefixes/Prefix").map(decodeURIComponent);
    found.keys.push(...keys);
    found.prefixes.push(...prefixes);
    if (document.get("IsTruncated") !== "true") return found;
    assert.equal(keys.length + prefixes.length, size, "a page before the last is full");
    behind = listing.next(document, keys);
  }
}

export const cases = casesOf(
  "Pages of listings",
  ...Object.entries(LISTINGS).map(([name, listing]): CaseRow => [
    `${name} gives every key and every common prefix once, in the order of bytes`,
    async (scene) => {
      await Promise.all([...new Set(KEYS)].map((key) => listing.make(scene, key)));
      for (const [index, delimiter] of DELIMITERS.entries()) {
        for (const [turn, prefix] of PREFIXES.entries()) {
          const size = PAGES[(index + turn) % PAGES.length]!;
          const query = `encoding-type=url&prefix=${encode(prefix)}&delimiter=${encode(delimiter)}&${listing.sizeName}=${size}`;
          const found = await readPages(scene, listing, query, size);
          assert.deepEqual(found, fold(prefix, delimiter), query);
        }
      }
    },
  ]),
);
