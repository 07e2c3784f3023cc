// Builds the index anew from the records on the disk, where it was lost: offline, and only what the records know.
import { existsSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { readBucketsFile } from "../bucket/buckets-file.ts";
import { StoreFolders, closeFile, openFile } from "../blob/disk.ts";
import { measureCiphertext } from "../blob/encryption.ts";
import type {
  ManifestDescription,
  ObjectDescription,
  RecordDescription,
  RecordSummary,
} from "../blob/record-description.ts";
import { scanRecords, type ScannedRecord } from "../blob/record-scan.ts";
import type { BlobPlace, BlobRecord } from "../blob/types.ts";
import type { Bucket } from "../bucket/types.ts";
import { StoreError } from "../store-error.ts";
import { buildComposite } from "../multipart/complete-operation.ts";
import { lockStore } from "./store-lock.ts";
import { formatChecksum } from "./records.ts";
import { IndexWriter } from "./writer.ts";

/** What was found. */
export interface RebuildReport {
  /** Where the old index was moved, if there was one. */
  movedTo: string | undefined;
  buckets: number;
  objects: number;
  /** Records that nothing refers to: parts of uploads that were not completed, overwritten bodies. */
  unused: number;
  /** Objects whose parts are not all there. */
  incomplete: { bucket: string; key: string }[];
}

interface FoundRecord {
  description: RecordDescription;
  summary: RecordSummary;
  blob: BlobRecord;
}

const IDS_PER_GENERATION = 2 ** 32;

/**
 * Rebuilds the index of a store that nobody has open. What lay in the index alone is gone: bodies up to 16 KiB, changes of
 * tags, ACLs and retention after the put, delete markers, uploads under way. Objects that were deleted come back if their
 * bytes were not collected yet.
 */
export async function rebuildIndex(dataDir: string): Promise<RebuildReport> {
  const folders = new StoreFolders(dataDir);
  folders.make();
  const unlock = lockStore(folders.lock);
  try {
    const records = await readRecords(folders);
    const movedTo = moveAway(folders);
    const lastId = records.reduce((max, { blob }) => Math.max(max, blob.id), lastSegment(folders));
    const writer = await IndexWriter.open({
      replicas: [{ slot: 0, path: folders.index }],
      waitingMax: Number.MAX_SAFE_INTEGER,
      limits: {
        pendingEventsMax: 0,
        bucketsMax: Number.MAX_SAFE_INTEGER,
        partBytesMin: 0,
        generationMin: Math.floor(lastId / IDS_PER_GENERATION),
      },
    });
    try {
      const report = await fillIndex(writer, records, readBucketsFile(folders.buckets));
      return { movedTo, ...report };
    } finally {
      await writer.close();
    }
  } finally {
    unlock();
  }
}

async function fillIndex(
  writer: IndexWriter,
  records: readonly FoundRecord[],
  known: readonly Bucket[],
): Promise<Omit<RebuildReport, "movedTo">> {
  const byId = new Map(records.map((record) => [record.blob.id, record]));
  const objects = chooseObjects(records);
  const buckets = new Map(known.map((bucket) => [bucket.name, bucket]));
  for (const { description } of objects) {
    if (buckets.has(description.bucket)) continue;
    buckets.set(description.bucket, guessBucket(description));
  }
  const incomplete: RebuildReport["incomplete"] = [];
  let used = 0;
  await writer.submit({ type: "restoreBuckets", buckets: [...buckets.values()] });
  for (const { description, summary, blob } of objects) {
    const parts = "parts" in description ? description.parts : [];
    const found = parts.map((part) => byId.get(part.blob));
    if (found.some((part) => part === undefined)) {
      incomplete.push({ bucket: description.bucket, key: description.key });
      continue;
    }
    used += 1 + found.length;
    await writer.submit({
      type: "restoreObject",
      object: buildObject(description, summary, blob),
      versioned: description.versioned,
      blob,
      parts: parts.map((part, index) => ({ ...part, record: found[index]!.blob })),
    });
  }
  return {
    buckets: buckets.size,
    objects: objects.length - incomplete.length,
    unused: records.length - used,
    incomplete,
  };
}

// Of an object without versions only the newest body counts.
function chooseObjects(records: readonly FoundRecord[]) {
  const objects = records
    .filter(
      (record): record is FoundRecord & { description: ObjectDescription } =>
        "versionId" in record.description,
    )
    .sort((a, b) => a.description.at - b.description.at || a.blob.id - b.blob.id);
  const newest = new Map<string, FoundRecord>();
  for (const record of objects) {
    const { bucket, key, versioned } = record.description;
    if (!versioned) newest.set(`${bucket}/${key}`, record);
  }
  return objects.filter(
    (record) =>
      record.description.versioned ||
      newest.get(`${record.description.bucket}/${record.description.key}`) === record,
  );
}

function buildObject(
  description: ObjectDescription | ManifestDescription,
  summary: RecordSummary,
  blob: BlobRecord,
) {
  const { bucket, key, versionId, at, columns } = description;
  const composite =
    "parts" in description ? buildComposite(columns.detail, description.parts) : undefined;
  return {
    ...columns,
    bucket,
    key,
    versionId,
    nowMs: at,
    size: blob.size,
    etag: composite?.etag ?? summary.etag ?? "",
    checksum: formatChecksum(summary.checksum),
    detail: composite?.detail ?? columns.detail,
    event: "ObjectCreated:Put" as const,
  };
}

function guessBucket({ bucket, at, versioned, columns }: ObjectDescription): Bucket {
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
    objectLockEnabled: false,
    settings: {},
  };
}

async function readRecords(folders: StoreFolders): Promise<FoundRecord[]> {
  const records = new Map<number, FoundRecord>();
  for (const name of readdirSync(folders.segments)) {
    const segment = Number.parseInt(name, 16);
    await readFileRecords(join(folders.segments, name), (record) =>
      addRecord(records, record, { kind: "segment", segment, position: record.framesAt }),
    );
  }
  for (const folder of readdirSync(folders.files)) {
    for (const name of readdirSync(join(folders.files, folder))) {
      await readFileRecords(join(folders.files, folder, name), (record) =>
        addRecord(records, record, { kind: "file", position: record.framesAt }),
      );
    }
  }
  return [...records.values()];
}

async function readFileRecords(path: string, add: (record: ScannedRecord) => void): Promise<void> {
  const fd = await openFile(path, "r");
  try {
    for await (const record of scanRecords(fd)) add(record);
  } finally {
    await closeFile(fd);
  }
}

function addRecord(
  records: Map<number, FoundRecord>,
  { id, stored, extent, description, summary }: ScannedRecord,
  place: BlobPlace,
): void {
  const known = description as RecordDescription;
  const manifest = "parts" in known && place.kind === "segment" ? place : undefined;
  const size =
    "parts" in known
      ? known.parts.reduce((sum, part) => sum + part.size, 0)
      : (known.size ?? stored);
  // A size that does not fit what is stored is not believed.
  if (known.cipher !== undefined && measureCiphertext(size) !== stored) return;
  const blob: BlobRecord = {
    id,
    size,
    stored: manifest === undefined ? stored : size,
    extent,
    place: manifest === undefined ? place : { kind: "parts", manifest },
    ...(known.cipher === undefined ? {} : { cipher: known.cipher }),
  };
  records.set(id, { description: known, summary: summary as RecordSummary, blob });
}

function lastSegment(folders: StoreFolders): number {
  const ids = readdirSync(folders.segments).map((name) => Number.parseInt(name, 16));
  return ids.reduce((max, id) => Math.max(max, id), 0);
}

// Nothing is thrown away: somebody may still get more out of the old one.
function moveAway(folders: StoreFolders): string | undefined {
  if (!existsSync(folders.index)) return undefined;
  for (let number = 1; number < 1000; number += 1) {
    const target = `${folders.index}.lost-${number}`;
    if (existsSync(target)) continue;
    renameSync(folders.index, target);
    if (existsSync(`${folders.index}-wal`)) renameSync(`${folders.index}-wal`, `${target}-wal`);
    return target;
  }
  throw new StoreError("InternalError", "there are too many lost indexes in the folder already");
}
