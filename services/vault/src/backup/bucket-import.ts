// Imports the versions of one bucket of a snapshot into a hidden bucket of the store, page by page.
import type { KeyProvider } from "../blob/encryption.ts";
import {
  decodeKey,
  type ObjectDetail,
  parseChecksum,
  parsePartChecksums,
} from "../index/records.ts";
import type { BlobId } from "../model/blob.ts";
import type { ImportedPart, ImportedVersion } from "../model/import.ts";
import { StoreError } from "../model/store-error.ts";
import type { ImportService, StoredImport } from "../store/import-service.ts";
import type { ObjectDescription, RecordSummary } from "../store/record-description.ts";
import type { SnapshotPosition, SnapshotReader, SnapshotVersion } from "./snapshot-reader.ts";

/** Versions of a page, and bytes after which it ends. */
const VERSIONS_MAX = 128;
const PAGE_BYTES_MAX = 32 * 1024 * 1024;
/** Bodies that are copied at once. */
const AT_ONCE = 8;
/** Bodies of several versions whose new places are remembered; others are copied again. */
const SHARED_MAX = 100_000;
const STANDARD = "STANDARD";

/** Options of {@link BucketImport}. */
export interface BucketImportOptions {
  readonly reader: SnapshotReader;
  readonly imports: ImportService;
  /** Keys of the snapshot and of the store. */
  readonly keys: Pick<KeyProvider, "find">;
  /** The bucket's number in the snapshot. */
  readonly bucketId: number;
  /** The name that it will have. */
  readonly name: string;
}

/** Versions whose bodies are stored, to be committed. */
export interface ImportPage {
  readonly versions: readonly ImportedVersion[];
  readonly position: SnapshotPosition;
  readonly bytes: number;
  readonly isLast: boolean;
}

/** The import of a bucket. */
export class BucketImport {
  readonly #options: BucketImportOptions;
  /** New ids of bodies that several versions share, by their ids in the snapshot. */
  readonly #shared = new Map<BlobId, BlobId>();
  #stored: StoredImport[] = [];

  constructor(options: BucketImportOptions) {
    this.#options = options;
  }

  /** Stores the bodies of the next page. After its commit, or instead of it, call `end`. */
  async readPage(from: SnapshotPosition): Promise<ImportPage> {
    const { reader, bucketId } = this.#options;
    const rows: SnapshotVersion[] = [];
    let position = from;
    let bytes = 0;
    let isLast = false;
    while (rows.length < VERSIONS_MAX && bytes < PAGE_BYTES_MAX) {
      const rowsMax = VERSIONS_MAX - rows.length;
      const found = reader.readKey(bucketId, position, rowsMax);
      if (found === undefined) {
        isLast = true;
        break;
      }
      rows.push(...found.rows.map((row) => this.#bringBack(row)));
      bytes += found.rows.reduce((sum, { size }) => sum + size, 0);
      const key = found.key.toString("base64");
      const last = found.rows.at(-1);
      position = found.rows.length === rowsMax && last ? { key, seq: last.seq } : { key };
    }
    return { versions: await this.#importRows(rows), position, bytes, isLast };
  }

  // A body that was in a remote is copied from there, and is one of this store then: the remote's key is the other store's.
  #bringBack(row: SnapshotVersion): SnapshotVersion {
    if (row.blob === null || row.class === STANDARD) return row;
    if (!this.#options.reader.isRemote(row.blob)) return row;
    const { restore: _, ...detail } = JSON.parse(row.detail) as ObjectDetail;
    return { ...row, class: STANDARD, detail: JSON.stringify(detail) };
  }

  /** Ends a page: its bodies are committed, or removed. */
  async end(isCommitted: boolean): Promise<void> {
    const stored = this.#stored;
    this.#stored = [];
    if (!isCommitted) this.#shared.clear();
    if (isCommitted) for (const one of stored) one.end();
    else await Promise.all(stored.map((one) => one.discard()));
  }

  async #importRows(rows: readonly SnapshotVersion[]): Promise<ImportedVersion[]> {
    const contents = new Map<BlobId, ImportedVersion["content"]>();
    const wanted = [...new Set(rows.flatMap(({ blob }) => (blob === null ? [] : [blob])))];
    const firsts = new Map(wanted.map((id) => [id, rows.find(({ blob }) => blob === id)!]));
    for (let at = 0; at < wanted.length; at += AT_ONCE) {
      const some = wanted.slice(at, at + AT_ONCE);
      const works = some.map(async (id) => {
        contents.set(id, await this.#importBlob(id, firsts.get(id)!));
      });
      const ends = await Promise.allSettled(works);
      for (const end of ends) if (end.status === "rejected") throw end.reason;
    }
    return rows.map((row) => {
      const content = row.blob === null ? undefined : contents.get(row.blob);
      // The next version in the page shares the body of this one.
      if (content !== undefined && "blob" in content) {
        contents.set(row.blob!, { share: content.blob.id });
      }
      return this.#toVersion(row, content);
    });
  }

  async #importBlob(id: BlobId, row: SnapshotVersion): Promise<ImportedVersion["content"]> {
    const known = this.#shared.get(id);
    if (known !== undefined) return { share: known };
    const { reader } = this.#options;
    const { blob, refs } = reader.findBlob(id);
    const description = this.#describe(row);
    const content =
      blob.place.kind === "parts"
        ? await this.#importParts(id, description)
        : { blob: (await this.#store(id, description, summarize(row.etag, row.checksum))).blob };
    if (refs > 1) {
      this.#shared.set(id, content.blob.id);
      const [oldest] = this.#shared.keys();
      if (this.#shared.size > SHARED_MAX) this.#shared.delete(oldest!);
    }
    return content;
  }

  async #importParts(id: BlobId, description: ObjectDescription) {
    const { bucket, key, at } = description;
    const parts: ImportedPart[] = [];
    for (const { number, start, size, etag, modified, ...rest } of this.#options.reader.listParts(
      id,
    )) {
      const ofPart = { bucket, key, at, uploadId: "restored", partNumber: number };
      const [checksum] = rest.checksum === null ? [] : parsePartChecksums(rest.checksum);
      const summary = { etag, ...(checksum === undefined ? {} : { checksum }) };
      const { blob } = await this.#store(rest.blob, ofPart, summary);
      parts.push({ number, start, size, etag, modified, checksum: rest.checksum, blob });
    }
    const total = parts.reduce((sum, { size }) => sum + size, 0);
    const listed = parts.map(({ number, size, etag, modified, checksum, blob }) => ({
      number,
      size,
      etag,
      modified,
      checksum,
      blob: blob.id,
    }));
    const manifest = await this.#options.imports.storeManifest(total, {
      ...description,
      parts: listed,
    });
    this.#stored.push(manifest);
    return { blob: manifest.blob, parts };
  }

  async #store(
    id: BlobId,
    description: Parameters<ImportService["store"]>[0]["description"],
    summary: RecordSummary,
  ): Promise<StoredImport> {
    const { reader, imports, keys } = this.#options;
    const { blob } = reader.findBlob(id);
    const chunks = reader.readStored(blob);
    const stored = await imports.store({ blob, description, summary, chunks }, keys);
    this.#stored.push(stored);
    return stored;
  }

  #describe(row: SnapshotVersion): ObjectDescription {
    const { retain_mode: mode, retain_until: untilMs } = row;
    return {
      bucket: this.#options.name,
      key: decodeKey(row.key),
      at: row.modified,
      versionId: row.version,
      versioned: row.version !== "null",
      columns: {
        class: row.class,
        owner: row.owner,
        tags: row.tags,
        hold: row.hold === 0 ? null : row.hold === 1,
        detail: row.detail,
        ...(mode === null || untilMs === null ? {} : { retention: { mode, untilMs } }),
      },
    };
  }

  #toVersion(row: SnapshotVersion, content: ImportedVersion["content"]): ImportedVersion {
    const { reader, bucketId } = this.#options;
    if (row.marker === 0 && content === undefined) {
      throw new StoreError("InternalError", "A version of the snapshot has no body");
    }
    return {
      key: decodeKey(row.key),
      row: {
        version: row.version,
        size: row.size,
        etag: row.etag,
        modified: row.modified,
        class: row.class,
        checksum: row.checksum,
        owner: row.owner,
        tags: row.tags,
        retain_mode: row.retain_mode,
        retain_until: row.retain_until,
        hold: row.hold,
        detail: row.detail,
        marker: row.marker,
      },
      isLive: row.live === 1,
      noncurrentSince: row.noncurrent_since,
      content,
      vector: reader.findVector(bucketId, row.key, row.version),
    };
  }
}

function summarize(etag: string, checksum: string | null): RecordSummary {
  return { etag, ...(checksum === null ? {} : { checksum: parseChecksum(checksum) }) };
}
