// The records on disk as they describe themselves, without an index.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { closeFile, openFile, type StoreFolders } from "../disk/files.ts";
import { measureCiphertext } from "../blob/encryption.ts";
import type {
  ManifestDescription,
  ObjectDescription,
  RecordDescription,
  RecordSummary,
} from "../store/record-description.ts";
import { scanRecords, type ScannedRecord } from "../blob/record-scan.ts";
import type { BlobPlace, BlobRecord } from "../model/blob.ts";
import { readBucketsFile } from "../store/buckets-file.ts";
import type { Bucket } from "../model/bucket.ts";
import { encodeHold, encodeKey, formatChecksum, type VersionRow } from "../index/records.ts";
import { buildComposite } from "../transaction/complete-operation.ts";

/** A record with its blob. */
export interface FoundRecord {
  description: RecordDescription;
  summary: RecordSummary;
  blob: BlobRecord;
  /** Its location. */
  path: string;
}

/** A record of an object, in one piece or of parts. */
export type ObjectRecord = FoundRecord & { description: ObjectDescription | ManifestDescription };

/** All records in a folder of a store, by blob. Records in quarantine are in files or segments, too. */
export async function readRecords(folders: StoreFolders): Promise<Map<number, FoundRecord>> {
  const records = new Map<number, FoundRecord>();
  for (const path of listBodies(folders)) {
    const fd = await openFile(path, "r");
    try {
      for await (const record of scanRecords(fd)) {
        if ((await record.verify()) >= 0) continue;
        const found = buildRecord(record, path);
        if (found !== undefined) records.set(record.id, found);
      }
    } finally {
      await closeFile(fd);
    }
  }
  return records;
}

/**
 * Paths of segments and files with bodies. Those in quarantine come first, so files in their regular place replace them.
 */
export function listBodies(folders: StoreFolders): string[] {
  const list = (folder: string) =>
    existsSync(folder)
      ? readdirSync(folder, { withFileTypes: true })
          .filter((entry) => entry.isFile() && BODY_NAME.test(entry.name))
          .map(({ name }) => join(folder, name))
      : [];
  const nested = existsSync(folders.files) ? readdirSync(folders.files).sort() : [];
  return [
    ...list(folders.quarantine),
    ...list(folders.segments),
    ...nested.flatMap((name) => list(join(folders.files, name))),
  ];
}

/** The number in the name of a segment or a file. */
export function readBodyId(path: string): number {
  return Number.parseInt(BODY_NAME.exec(path)?.[1] ?? "", 16);
}

const BODY_NAME = /([0-9a-f]{14})\.(?:seg|blob)(?:\.\d+)?$/;

/** True if a record is an object, not a part of an upload. */
export function isObjectRecord(record: FoundRecord): record is ObjectRecord {
  return "versionId" in record.description;
}

/** The row that the object of a record had when it was put. */
export function buildVersionRow(
  { description, summary, blob }: ObjectRecord,
  bucket: number,
  seq: number,
): VersionRow {
  const { key, versionId, versioned, at, columns } = description;
  const composite =
    "parts" in description ? buildComposite(columns.detail, description.parts) : undefined;
  return {
    bucket,
    key: encodeKey(key),
    seq,
    version: versioned ? versionId : "null",
    size: blob.size,
    etag: composite?.etag ?? summary.etag ?? "",
    modified: at,
    blob: blob.id,
    class: columns.class,
    checksum: formatChecksum(summary.checksum),
    owner: columns.owner,
    tags: columns.tags,
    retain_mode: columns.retention?.mode ?? null,
    retain_until: columns.retention?.untilMs ?? null,
    hold: encodeHold(columns.hold),
    detail: composite?.detail ?? columns.detail,
  };
}

/** A bucket that is only known from an object in it: private, like new buckets. */
export function guessBucket({ bucket, at, versioned, columns }: ObjectDescription): Bucket {
  const owner =
    columns.owner === null
      ? { id: "", displayName: "" }
      : (JSON.parse(columns.owner) as Bucket["owner"]);
  return {
    name: bucket,
    createdMs: at,
    owner,
    region: "us-east-1",
    versioning: versioned ? "Enabled" : "Unset",
    objectLockEnabled: columns.retention !== undefined || columns.hold !== null,
    settings: {},
  };
}

function buildRecord(
  { id, stored, extent, description, summary, framesAt }: ScannedRecord,
  path: string,
): FoundRecord | undefined {
  const known = description as RecordDescription;
  // A single shard is not the body.
  if ("shard" in known) return undefined;
  // A temporary copy is described by the body that it is a copy of.
  if ("copyOf" in known) return undefined;
  if (known.remote !== undefined)
    return buildStub(id, known, known.remote, { extent, summary, position: framesAt, path });
  const isSegment = path.includes(".seg");
  const place: BlobPlace = isSegment
    ? { kind: "segment", segment: readBodyId(path), position: framesAt }
    : { kind: "file", position: framesAt };
  const manifest = "parts" in known && place.kind === "segment" ? place : undefined;
  const size =
    "parts" in known
      ? known.parts.reduce((sum, part) => sum + part.size, 0)
      : (known.size ?? stored);
  // A size that does not match the stored bytes is ignored.
  if (known.cipher !== undefined && measureCiphertext(size) !== stored) return undefined;
  const blob: BlobRecord = {
    id,
    size,
    stored: manifest === undefined ? stored : size,
    extent,
    place: manifest === undefined ? place : { kind: "parts", manifest },
    ...(known.cipher === undefined ? {} : { cipher: known.cipher }),
  };
  return { description: known, summary: summary as RecordSummary, blob, path };
}

// A body that is in a remote: its record here has no data.
function buildStub(
  id: number,
  description: RecordDescription,
  { stored, ...at }: NonNullable<RecordDescription["remote"]>,
  record: { extent: number; summary: unknown; position: number; path: string },
): FoundRecord {
  const { size = stored, cipher } = description;
  const { extent, summary, position, path } = record;
  const stub = { segment: readBodyId(path), position };
  const blob: BlobRecord = {
    id,
    size,
    stored,
    extent,
    place: { kind: "remote", stub, at },
    ...(cipher === undefined ? {} : { cipher }),
  };
  return { description, summary: summary as RecordSummary, blob, path };
}

/** The copy of the buckets; empty if it is missing or damaged. */
export function readBuckets(folders: StoreFolders): Bucket[] {
  try {
    return readBucketsFile(folders.buckets);
  } catch {
    // The rows of the index, or defaults, must suffice.
    return [];
  }
}
