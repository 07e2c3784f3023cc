// Files that change in pages, such as a database: new pages go into packs, and a map says where each page is.
import { open } from "node:fs/promises";
import { BackupError } from "../error.ts";
import type { SnapshotFile } from "../snapshot.ts";
import {
  digestPage,
  type FileEntry,
  MAP_ENTRY_BYTES,
  PACKS_MAX,
  PAGE_HASH_BYTES,
  type Piece,
} from "./format.ts";
import { digestBytes, PIECE_BYTES_MAX } from "./object-names.ts";
import type { RepositoryObjects } from "./objects.ts";

/** The share of a pack that is still used, below which its pages are written again. */
const LIVE_SHARE_MIN = 0.25;
/** Packs above which those with the fewest used pages are written again. The rest is for new pages. */
const PACKS_KEPT = Math.floor(PACKS_MAX * 0.9);

type Pages = NonNullable<FileEntry["pages"]>;

/** Stores a file by its pages. `before` is its entry in the snapshot before. */
export async function putPages(
  objects: RepositoryObjects,
  file: SnapshotFile,
  pageBytes: number,
  before: FileEntry | undefined,
): Promise<FileEntry> {
  const known =
    before?.pages?.page_bytes === pageBytes
      ? await KnownPages.read(objects, file.path, before.pages)
      : undefined;
  const writer = new PackWriter(objects, file.path, pageBytes);
  const entries: Buffer[] = [];
  let number = 0;
  for await (const page of cutPages(file.read(), pageBytes)) {
    const hash = digestPage(page);
    const place = known?.find(number, hash);
    const { pack, at } =
      place === undefined
        ? await writer.add(page)
        : { pack: writer.reuse(place.piece), at: place.at };
    const entry = Buffer.alloc(MAP_ENTRY_BYTES);
    hash.copy(entry);
    entry.writeUInt16BE(pack, PAGE_HASH_BYTES);
    entry.writeUInt32BE(at, PAGE_HASH_BYTES + 2);
    entries.push(entry);
    number += 1;
  }
  const packs = await writer.end();
  const map = await putPieces(
    objects,
    `${file.path} map`,
    Buffer.concat(entries),
    before?.pages?.map ?? [],
  );
  return { path: file.path, bytes: file.bytes, pages: { page_bytes: pageBytes, packs, map } };
}

/** Writes a file that was stored by its pages into a new file, and verifies each page. */
export async function restorePages(
  objects: RepositoryObjects,
  { path, bytes, pages }: FileEntry & { pages: Pages },
  to: string,
): Promise<void> {
  const { page_bytes: pageBytes, packs } = pages;
  const map = await readMap(objects, path, pages);
  if (map.length !== Math.ceil(bytes / pageBytes) * MAP_ENTRY_BYTES) {
    throw new BackupError(`${path}: its map has another number of pages`);
  }
  const file = await open(to, "wx", 0o600);
  try {
    for (const [number, piece] of packs.entries()) {
      const pack = await objects.get(`${path} pack`, piece);
      for (const { index, at, hash } of readEntries(map, number)) {
        const page = pack.subarray(at * pageBytes, (at + 1) * pageBytes);
        if (!digestPage(page).equals(hash)) throw new BackupError(`${path}: page ${index} differs`);
        await file.write(page, 0, page.length, index * pageBytes);
      }
    }
    await file.sync();
    const { size } = await file.stat();
    if (size !== bytes) throw new BackupError(`${path}: ${size} bytes, expected ${bytes}`);
  } finally {
    await file.close();
  }
}

/** All pieces of a file, of its map and of its packs. */
export function listPieces({ pieces = [], pages }: FileEntry): Piece[] {
  return [...pieces, ...(pages?.packs ?? []), ...(pages?.map ?? [])];
}

// Stores bytes in pieces, as far as they differ from those before: an encrypted piece is never the same twice.
async function putPieces(
  objects: RepositoryObjects,
  path: string,
  bytes: Buffer,
  before: readonly Piece[],
): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES_MAX) {
    const piece = bytes.subarray(at, at + PIECE_BYTES_MAX);
    const plain = digestBytes(piece);
    const known = before[pieces.length];
    const isSame = known !== undefined && (known.plain ?? known.sha256) === plain;
    pieces.push(isSame ? known : await objects.put(path, piece, plain));
  }
  return pieces;
}

async function readMap(objects: RepositoryObjects, path: string, { map }: Pages): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (const piece of map) pieces.push(await objects.get(`${path} map`, piece));
  return Buffer.concat(pieces);
}

function* readEntries(
  map: Buffer,
  pack: number,
): Generator<{ index: number; at: number; hash: Buffer }> {
  for (let index = 0; index * MAP_ENTRY_BYTES < map.length; index += 1) {
    const from = index * MAP_ENTRY_BYTES;
    if (map.readUInt16BE(from + PAGE_HASH_BYTES) !== pack) continue;
    const hash = map.subarray(from, from + PAGE_HASH_BYTES);
    yield { index, at: map.readUInt32BE(from + PAGE_HASH_BYTES + 2), hash };
  }
}

/** Pages of the snapshot before that are still good to refer to. */
class KnownPages {
  readonly #map: Buffer;
  readonly #packs: readonly Piece[];
  readonly #left: ReadonlySet<number>;

  private constructor(map: Buffer, packs: readonly Piece[], left: ReadonlySet<number>) {
    this.#map = map;
    this.#packs = packs;
    this.#left = left;
  }

  static async read(objects: RepositoryObjects, path: string, pages: Pages): Promise<KnownPages> {
    const map = await readMap(objects, path, pages);
    const used = pages.packs.map(() => 0);
    for (let from = 0; from < map.length; from += MAP_ENTRY_BYTES) {
      const pack = map.readUInt16BE(from + PAGE_HASH_BYTES);
      used[pack] = (used[pack] ?? 0) + 1;
    }
    const shares = pages.packs.map(({ bytes }, pack) => ({
      pack,
      used: used[pack]!,
      share: (used[pack]! * pages.page_bytes) / Math.max(1, bytes),
    }));
    const kept = shares
      .filter(({ share }) => share >= LIVE_SHARE_MIN)
      .toSorted((a, b) => b.used - a.used)
      .slice(0, PACKS_KEPT);
    return new KnownPages(map, pages.packs, new Set(kept.map(({ pack }) => pack)));
  }

  /** The place of a page that has not changed. */
  find(number: number, hash: Buffer): { piece: Piece; at: number } | undefined {
    const from = number * MAP_ENTRY_BYTES;
    if (from >= this.#map.length) return undefined;
    if (!this.#map.subarray(from, from + PAGE_HASH_BYTES).equals(hash)) return undefined;
    const pack = this.#map.readUInt16BE(from + PAGE_HASH_BYTES);
    if (!this.#left.has(pack)) return undefined;
    return { piece: this.#packs[pack]!, at: this.#map.readUInt32BE(from + PAGE_HASH_BYTES + 2) };
  }
}

/** Collects new pages in packs, and numbers those that are referred to. */
class PackWriter {
  readonly #objects: RepositoryObjects;
  readonly #path: string;
  readonly #pagesMax: number;
  readonly #packs: (Piece | undefined)[] = [];
  readonly #reused = new Map<string, number>();
  #pages: Buffer[] = [];
  #number = -1;

  constructor(objects: RepositoryObjects, path: string, pageBytes: number) {
    this.#objects = objects;
    this.#path = path;
    this.#pagesMax = Math.floor(PIECE_BYTES_MAX / pageBytes);
  }

  async add(page: Buffer): Promise<{ pack: number; at: number }> {
    if (this.#pages.length === 0) this.#number = this.#allot();
    const place = { pack: this.#number, at: this.#pages.length };
    this.#pages.push(page);
    if (this.#pages.length === this.#pagesMax) await this.#flush();
    return place;
  }

  reuse(piece: Piece): number {
    const known = this.#reused.get(piece.sha256);
    if (known !== undefined) return known;
    const number = this.#allot();
    this.#packs[number] = piece;
    this.#reused.set(piece.sha256, number);
    return number;
  }

  async end(): Promise<Piece[]> {
    await this.#flush();
    return this.#packs as Piece[];
  }

  #allot(): number {
    if (this.#packs.length >= PACKS_MAX) {
      throw new BackupError(`${this.#path}: more than ${PACKS_MAX} packs of pages`);
    }
    return this.#packs.push(undefined) - 1;
  }

  async #flush(): Promise<void> {
    if (this.#pages.length === 0) return;
    const bytes = Buffer.concat(this.#pages);
    this.#pages = [];
    const plain = digestBytes(bytes);
    this.#packs[this.#number] = await this.#objects.put(`${this.#path} pack`, bytes, plain);
  }
}

// A last page may be shorter.
async function* cutPages(
  contents: AsyncIterable<Uint8Array>,
  pageBytes: number,
): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  for await (const chunk of contents) {
    held = Buffer.concat([held, chunk]);
    let at = 0;
    for (; held.length - at >= pageBytes; at += pageBytes) {
      yield Buffer.from(held.subarray(at, at + pageBytes));
    }
    held = held.subarray(at);
  }
  if (held.length > 0) yield Buffer.from(held);
}
