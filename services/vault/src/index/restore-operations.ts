// Rows of a rebuilt index, inside the writer.
import { insertBlob, shareBlob } from "../blob/blob-rows.ts";
import type { BlobRecord } from "../blob/types.ts";
import type { Bucket } from "../bucket/types.ts";
import type { ManifestPart } from "../multipart/upload-rows.ts";
import { placeObject, type NewObject } from "../object/put-operation.ts";
import { findCurrent } from "../version/version-rows.ts";
import { encodeKey } from "./records.ts";
import type { WriterContext } from "./writer-context.ts";

/** Adds buckets as they were. */
export interface RestoreBucketsOperation {
  type: "restoreBuckets";
  buckets: readonly Bucket[];
}

/** Adds an object that was found on the disk, as the newest of its key. */
export interface RestoreObjectOperation {
  type: "restoreObject";
  object: NewObject;
  versioned: boolean;
  blob: BlobRecord;
  parts: readonly (ManifestPart & { record: BlobRecord })[];
}

/** Applies the restoring of buckets. */
export function applyRestoreBuckets(
  context: WriterContext,
  { buckets }: RestoreBucketsOperation,
): null {
  for (const bucket of buckets) {
    const { lastInsertRowid } = context
      .sql("insert into buckets (name, document) values (?, ?)")
      .run(bucket.name, JSON.stringify(bucket));
    context.buckets.set(bucket.name, { id: Number(lastInsertRowid), bucket });
  }
  return null;
}

/** Applies the restoring of an object. */
export function applyRestoreObject(
  context: WriterContext,
  { object, versioned, blob, parts }: RestoreObjectOperation,
): null {
  const state = context.requireBucket(object.bucket);
  insertBlob(context, blob);
  let start = 0;
  for (const part of parts) {
    if (!shareBlob(context, part.record.id)) insertBlob(context, part.record);
    context
      .sql("insert into blob_parts values (?, ?, ?, ?, ?, ?, ?, ?)")
      .run(
        blob.id,
        start,
        part.number,
        part.record.id,
        part.size,
        part.etag,
        part.modified,
        part.checksum,
      );
    start += part.size;
  }
  // As it was when the object came, whatever the bucket says today; and without events.
  const then = {
    id: state.id,
    bucket: {
      ...state.bucket,
      versioning: versioned
        ? ("Enabled" as const)
        : state.bucket.versioning === "Unset"
          ? ("Unset" as const)
          : ("Suspended" as const),
      objectLockEnabled: true,
      settings: {},
    },
  };
  const key = encodeKey(object.key);
  placeObject(context, then, key, findCurrent(context, state.id, key), object, blob.id);
  return null;
}
