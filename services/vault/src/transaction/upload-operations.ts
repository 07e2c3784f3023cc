// Multipart uploads inside the writer: create, add parts, abort. Completion is in `complete-operation.ts`.
import { insertBlob, releaseBlob, shareBlob } from "./blob-rows.ts";
import type { BlobId, BlobRecord } from "../model/blob.ts";
import { encodeKey, type ObjectDetail } from "../index/records.ts";
import { type GeoMark, joinMarks } from "../model/geo.ts";
import { sealPart } from "../index/seal.ts";
import type { WriterContext } from "./writer-context.ts";
import { StoreError } from "../model/store-error.ts";
import { requireQuota } from "../model/quota.ts";
import type { UploadAddress } from "../model/upload.ts";
import { releaseUpload, type UploadDetail, type UploadRow } from "./upload-rows.ts";

export interface CreateUploadOperation {
  type: "createUpload";
  address: UploadAddress;
  detail: UploadDetail;
  nowMs: number;
}

/** Adds or replaces a part. The result of `share` is `gone` if the blob does not exist any more. */
export interface PutPartOperation {
  type: "putPart";
  address: UploadAddress;
  partNumber: number;
  size: number;
  etag: string;
  checksum: string | null;
  content: { blob: BlobRecord } | { share: BlobId };
  nowMs: number;
  /** The mark of the source that it was copied from. */
  geo?: GeoMark;
}

/** Ends an upload without an object. */
export interface AbortUploadOperation {
  type: "abortUpload";
  address: UploadAddress;
}

/** Removes the stored results of uploads that were completed before `beforeMs`. */
export interface ForgetUploadsOperation {
  type: "forgetUploads";
  beforeMs: number;
}

/** Applies the creation of an upload. */
export function applyCreateUpload(context: WriterContext, operation: CreateUploadOperation): null {
  const { address, detail, nowMs } = operation;
  const state = context.requireBucket(address.bucket);
  context
    .sql("insert into uploads (upload_id, bucket, key, created, detail) values (?, ?, ?, ?, ?)")
    .run(address.uploadId, state.id, encodeKey(address.key), nowMs, JSON.stringify(detail));
  context.usage.edit(state.id).uploads += 1;
  return null;
}

export function applyPutPart(
  context: WriterContext,
  operation: PutPartOperation,
): { gone?: boolean } {
  const upload = requireUpload(context, operation.address);
  if (upload.completed !== null) throw noSuchUpload(operation.address);
  const { content, partNumber } = operation;
  const { bucket } = context.requireBucket(operation.address.bucket);
  if (bucket.settings.quota !== undefined) {
    const before = findPartBytes(context, upload.id, partNumber);
    requireQuota(bucket, context.usage.read(upload.bucket), operation.size - before, 0);
  }
  if ("share" in content && !shareBlob(context, content.share)) return { gone: true };
  if ("blob" in content) insertBlob(context, content.blob);
  const replaced = context
    .sql("delete from parts where upload = ? and number = ? returning blob, size")
    .get(upload.id, partNumber);
  if (replaced !== undefined) {
    releaseBlob(context, Number(replaced["blob"]));
    context.usage.edit(upload.bucket).uploadBytes -= Number(replaced["size"]);
  }
  const blob = "blob" in content ? content.blob.id : content.share;
  context.sql("insert into parts values (?, ?, ?, ?, ?, ?, ?, ?)").run(
    upload.id,
    partNumber,
    blob,
    operation.size,
    operation.etag,
    operation.nowMs,
    operation.checksum,
    sealPart({
      owner: upload.id,
      start: 0,
      number: partNumber,
      blob,
      size: operation.size,
      etag: operation.etag,
      modified: operation.nowMs,
      checksum: operation.checksum,
    }),
  );
  context.usage.edit(upload.bucket).uploadBytes += operation.size;
  if (operation.geo !== undefined) markUpload(context, upload, operation.geo);
  return {};
}

// The object of an upload may go where all of its parts may.
function markUpload(context: WriterContext, { id, detail: text }: UploadRow, geo: GeoMark): void {
  const detail = JSON.parse(text) as UploadDetail;
  const object = JSON.parse(detail.object.detail) as ObjectDetail;
  const marked = JSON.stringify({ ...object, geo: joinMarks(object.geo, geo) });
  const changed: UploadDetail = { ...detail, object: { ...detail.object, detail: marked } };
  context.sql("update uploads set detail = ? where id = ?").run(JSON.stringify(changed), id);
}

function findPartBytes(context: WriterContext, upload: number, partNumber: number): number {
  const row = context
    .sql("select size from parts where upload = ? and number = ?")
    .get(upload, partNumber);
  return Number(row?.["size"] ?? 0);
}

export function applyAbortUpload(context: WriterContext, operation: AbortUploadOperation): null {
  const upload = requireUpload(context, operation.address);
  if (upload.completed !== null) throw noSuchUpload(operation.address);
  releaseUpload(context, upload);
  return null;
}

/** Applies the removal of stored results. */
export function applyForgetUploads(
  context: WriterContext,
  { beforeMs }: ForgetUploadsOperation,
): { forgotten: number } {
  const { changes } = context
    .sql(
      "delete from uploads where id in " +
        "(select id from uploads where completed is not null and completed < ? limit 1000)",
    )
    .run(beforeMs);
  return { forgotten: Number(changes) };
}

/** The upload, open or completed; throws `NoSuchUpload`. */
export function requireUpload(context: WriterContext, address: UploadAddress): UploadRow {
  const state = context.requireBucket(address.bucket);
  const row = context
    .sql("select * from uploads where upload_id = ? and bucket = ? and key = ?")
    .get(address.uploadId, state.id, encodeKey(address.key)) as unknown as UploadRow | undefined;
  if (row === undefined) throw noSuchUpload(address);
  return row;
}

/** The error for a missing or ended upload. */
export function noSuchUpload({ bucket, key }: UploadAddress): StoreError {
  return new StoreError(
    "NoSuchUpload",
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
    { bucket, key },
  );
}
