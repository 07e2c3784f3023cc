// Completion of an upload, inside the writer: the parts become a composite blob without copying bytes.
import { createHash } from "node:crypto";
import { insertBlob } from "./blob-rows.ts";
import {
  encodeKey,
  formatChecksum,
  parsePartChecksums,
  type ObjectDetail,
} from "../index/records.ts";
import { damagedRow, matchesSeal, sealPart } from "../index/seal.ts";
import { listBlobPartValues } from "../index/sealed-values.ts";
import type { WriterContext } from "./writer-context.ts";
import { combineChecksums } from "./composite-checksum.ts";
import {
  checkWriteConditions,
  placeObject,
  requirePutQuota,
  type NewObject,
} from "./put-operation.ts";
import type { ObjectChecksum, PutResult } from "../model/object.ts";
import { StoreError } from "../model/store-error.ts";
import { findCurrent } from "./version-rows.ts";
import type { CompleteUploadRequest } from "../model/upload.ts";
import { noSuchUpload, requireUpload } from "./upload-operations.ts";
import { releaseParts, type PartRow, type UploadDetail, type UploadRow } from "./upload-rows.ts";

export interface CompleteUploadOperation {
  type: "completeUpload";
  request: CompleteUploadRequest;
  /** The id of the object's version if versioning is enabled, and the id of its blob. */
  versionId: string;
  blobId: number;
  /** The location of the manifest, and the blobs that it lists, in order. */
  manifest: { segment: number; position: number; extent: number };
  blobs: readonly number[];
  nowMs: number;
}

/** `changed`: a part was replaced since the manifest was written. */
export type CompleteOutcome = { result: PutResult } | { changed: true };

/** The stored result of a completed upload, for clients that repeat the request. */
interface CompletedUpload {
  parts: string;
  result: PutResult;
}

/** Applies the completion of an upload. */
export function applyCompleteUpload(
  context: WriterContext,
  operation: CompleteUploadOperation,
): CompleteOutcome {
  const { request } = operation;
  const upload = requireUpload(context, request);
  if (upload.completed !== null) return { result: answerAgain(upload, request) };
  const detail = JSON.parse(upload.detail) as UploadDetail;
  const parts = chooseParts(context, upload, request);
  if (parts.some(({ blob }, index) => blob !== operation.blobs[index])) return { changed: true };
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  if (request.sizeBytes !== undefined && request.sizeBytes !== size) {
    throw new StoreError(
      "InvalidRequest",
      `The provided 'x-amz-mp-object-size' header value ${request.sizeBytes} does not match what was computed: ${size}`,
    );
  }
  const checksum = computeChecksum(parts, detail, request);
  const object = buildObject(operation, detail, parts, size, checksum);
  const state = context.requireBucket(request.bucket);
  const key = encodeKey(request.key);
  const current = findCurrent(context, state.id, key);
  checkWriteConditions(object, current);
  // The bytes of the parts are already counted.
  if (state.bucket.settings.quota !== undefined) requirePutQuota(context, state, key, current, 0);
  moveParts(context, operation, upload, parts, size);
  const versionId = placeObject(context, state, key, current, object, operation.blobId);
  const result: PutResult = {
    etag: object.etag,
    versionId,
    sizeBytes: size,
    modifiedMs: operation.nowMs,
  };
  if (checksum !== undefined) result.checksum = checksum;
  const { encryption } = JSON.parse(object.detail) as ObjectDetail;
  if (encryption !== undefined) result.encryption = encryption;
  const kept: CompletedUpload = { parts: describeParts(request), result };
  context
    .sql("update uploads set completed = ?, result = ? where id = ?")
    .run(operation.nowMs, JSON.stringify(kept), upload.id);
  return { result };
}

function answerAgain(upload: UploadRow, request: CompleteUploadRequest): PutResult {
  const kept = JSON.parse(upload.result ?? "{}") as Partial<CompletedUpload>;
  if (kept.result === undefined || kept.parts !== describeParts(request))
    throw noSuchUpload(request);
  return kept.result;
}

// A digest, because 10 000 parts would make a long row.
function describeParts({ parts }: CompleteUploadRequest): string {
  const hash = createHash("sha256");
  for (const { partNumber, etag } of parts) hash.update(`${partNumber}:${etag};`);
  return hash.digest("base64");
}

function chooseParts(
  context: WriterContext,
  upload: UploadRow,
  request: CompleteUploadRequest,
): PartRow[] {
  if (request.parts.length === 0) {
    throw new StoreError("InvalidRequest", "You must specify at least one part");
  }
  requireOrder(request);
  const chosen = request.parts.map((wanted) => requirePart(context, upload, wanted));
  const bytesMin = context.limits.partBytesMin;
  const small = chosen.slice(0, -1).find(({ size }) => size < bytesMin);
  if (small === undefined) return chosen;
  const { number, etag, size: sizeBytes } = small;
  throw new StoreError(
    "EntityTooSmall",
    "Your proposed upload is smaller than the minimum allowed object size.",
    { part: { number, etag, sizeBytes, bytesMin } },
  );
}

function requirePart(
  context: WriterContext,
  upload: UploadRow,
  { partNumber: number, etag, checksum }: CompleteUploadRequest["parts"][number],
): PartRow {
  const row = context
    .sql(
      "select number, blob, size, etag, modified, checksum, seal from parts where upload = ? and number = ?",
    )
    .get(upload.id, number) as unknown as (PartRow & { seal: number | null }) | undefined;
  if (
    row !== undefined &&
    !matchesSeal(row.seal, sealPart({ ...row, owner: upload.id, start: 0 }))
  ) {
    throw damagedRow(`part ${number} of an upload`);
  }
  if (row !== undefined && row.etag === etag && matchesChecksum(row, checksum)) return row;
  throw new StoreError(
    "InvalidPart",
    "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified entity tag might not have matched the part's entity tag.",
    { part: { number, etag } },
  );
}

function requireOrder({ parts }: CompleteUploadRequest): void {
  for (const [index, { partNumber }] of parts.entries()) {
    if (index === 0 || partNumber > parts[index - 1]!.partNumber) continue;
    throw new StoreError(
      "InvalidPartOrder",
      "The list of parts was not in ascending order. The parts list must be specified in order by part number.",
    );
  }
}

function matchesChecksum(row: PartRow, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  return (
    row.checksum !== null && parsePartChecksums(row.checksum).some(({ value }) => value === wanted)
  );
}

function computeChecksum(
  parts: readonly PartRow[],
  { checksum }: UploadDetail,
  request: CompleteUploadRequest,
): ObjectChecksum | undefined {
  if (checksum === undefined) return undefined;
  if (request.checksumType !== undefined && request.checksumType !== checksum.type) {
    throw new StoreError(
      "BadDigest",
      `The checksum type ${request.checksumType} does not match that of the upload, ${checksum.type}.`,
    );
  }
  const pieces: { value: Buffer; size: number }[] = [];
  for (const part of parts) {
    if (part.checksum === null) return undefined;
    pieces.push({
      value: Buffer.from(parsePartChecksums(part.checksum)[0].value, "base64"),
      size: part.size,
    });
  }
  const combined = combineChecksums(checksum, pieces);
  // A composite checksum may have the number of parts as a suffix.
  const matches =
    request.checksum === undefined ||
    combined.value === request.checksum ||
    combined.value === `${request.checksum}-${parts.length}`;
  if (!matches) {
    throw new StoreError(
      "BadDigest",
      `The ${checksum.algorithm} you specified did not match the calculated checksum.`,
    );
  }
  return combined;
}

function buildObject(
  { request, versionId, nowMs }: CompleteUploadOperation,
  { object }: UploadDetail,
  parts: readonly PartRow[],
  size: number,
  checksum: ObjectChecksum | undefined,
): NewObject {
  const composite = buildComposite(object.detail, parts);
  return {
    ...object,
    ...composite,
    bucket: request.bucket,
    key: request.key,
    nowMs,
    versionId,
    size,
    checksum: formatChecksum(checksum),
    event: "ObjectCreated:CompleteMultipartUpload",
    ...(request.vector === undefined ? {} : { vector: request.vector }),
    ...(request.conditions === undefined ? {} : { conditions: request.conditions }),
    ...(request.actor === undefined ? {} : { actor: request.actor }),
  };
}

/** ETag and detail of an object of parts. */
export function buildComposite(
  detail: string,
  parts: readonly Pick<PartRow, "etag">[],
): { etag: string; detail: string } {
  const md5 = createHash("md5");
  for (const part of parts) md5.update(Buffer.from(part.etag, "hex"));
  const object = { ...(JSON.parse(detail) as ObjectDetail), parts: parts.length };
  return { etag: `${md5.digest("hex")}-${parts.length}`, detail: JSON.stringify(object) };
}

function moveParts(
  context: WriterContext,
  { blobId, manifest }: CompleteUploadOperation,
  upload: UploadRow,
  parts: readonly PartRow[],
  size: number,
): void {
  const place = { kind: "parts", manifest } as const;
  insertBlob(context, { id: blobId, size, stored: size, extent: manifest.extent, place });
  let start = 0;
  for (const part of parts) {
    context.sql("delete from parts where upload = ? and number = ?").run(upload.id, part.number);
    context
      .sql("insert into blob_parts values (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(...listBlobPartValues({ ...part, owner: blobId, start }));
    start += part.size;
  }
  const usage = context.usage.edit(upload.bucket);
  usage.uploads -= 1;
  usage.uploadBytes -= size;
  releaseParts(context, upload);
}
