// Writes the list of the files of a snapshot in pages, which the next snapshot shares where nothing has changed.
import { createHash } from "node:crypto";
import type { BackupFile } from "../manifest.ts";
import { encodeList, type FileEntry, LIST_ENTRIES_MAX } from "./format.ts";
import { PIECE_BYTES_MAX } from "./object-names.ts";
import type { RepositoryObjects } from "./objects.ts";
import { nameList } from "./repository.ts";

/** One of so many entries, by the hash of its path, ends its page: added and removed files move few ends. */
const CUT_SHARE = 512;
/** Of entries before they are encoded; an entry with its pieces may be larger than others. */
const BYTES_MAX = PIECE_BYTES_MAX / 4;

/** Collects entries until their page ends, and stores the page. */
export class ListWriter {
  readonly #objects: RepositoryObjects;
  /** Pages of the snapshot before by their path, which need not be written again if they are encrypted. */
  readonly #known: ReadonlyMap<string, BackupFile>;
  readonly #pages: BackupFile[] = [];
  #entries: FileEntry[] = [];
  #bytes = 0;

  constructor(objects: RepositoryObjects, known: readonly BackupFile[]) {
    this.#objects = objects;
    this.#known = new Map(known.map((page) => [page.path, page]));
  }

  /** Adds an entry. */
  async add(entry: FileEntry): Promise<void> {
    this.#entries.push(entry);
    this.#bytes += JSON.stringify(entry).length;
    const isEnd =
      createHash("sha256").update(entry.path).digest().readUInt32BE(0) % CUT_SHARE === 0;
    const isFull = this.#entries.length >= LIST_ENTRIES_MAX || this.#bytes > BYTES_MAX;
    if (isEnd || isFull) await this.#endPage();
  }

  /** Ends the list. Returns its pages as files of the manifest. */
  async end(): Promise<BackupFile[]> {
    if (this.#entries.length > 0) await this.#endPage();
    return this.#pages;
  }

  async #endPage(): Promise<void> {
    const bytes = encodeList(this.#entries);
    this.#entries = [];
    this.#bytes = 0;
    const plain = createHash("sha256").update(bytes).digest("hex");
    const path = nameList(plain);
    const known = this.#known.get(path);
    if (known !== undefined) {
      this.#pages.push(known);
      return;
    }
    const { sha256, stored: size = bytes.length } = await this.#objects.put(path, bytes, plain);
    this.#pages.push({ path, size, sha256 });
  }
}
