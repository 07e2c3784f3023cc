// Listings of uploads in progress and of their parts.
import {
  buildKeyRange,
  findCommonPrefix,
  findEndOfPrefix,
  viewBytes,
  type KeyRange,
} from "../index/key-range.ts";
import {
  decodeKey,
  encodeKey,
  parsePartChecksums,
  parseOwner,
  type ObjectDetail,
} from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import type {
  ListedPart,
  ListPartsResult,
  ListUploadsRequest,
  ListUploadsResult,
  ObjectPartsResult,
  UploadAddress,
  UploadInfo,
} from "../model/upload.ts";
import type { PartRow, UploadDetail, UploadRow } from "../transaction/upload-rows.ts";

/** A listing of one bucket, by its number in the index. */
export type ListUploadsQuery = ListUploadsRequest & { bucketId: number };

/** A page of parts. */
export interface PageOfParts {
  afterPartNumber?: number;
  maxParts?: number;
}

/** Converts a row to upload information. */
export function buildUploadInfo(bucket: string, row: UploadRow): UploadInfo {
  const detail = JSON.parse(row.detail) as UploadDetail;
  const { encryption } = JSON.parse(detail.object.detail) as ObjectDetail;
  const info: UploadInfo = {
    bucket,
    key: decodeKey(row.key),
    uploadId: row.upload_id,
    createdMs: row.created,
    storageClass: detail.object.class,
  };
  if (detail.object.owner !== null) info.owner = parseOwner(detail.object.owner);
  if (detail.initiator !== undefined) info.initiator = detail.initiator;
  if (detail.checksum !== undefined) info.checksum = detail.checksum;
  if (encryption !== undefined) info.encryption = encryption;
  return info;
}

/** An upload in progress; `undefined` if it does not exist. */
export function findUpload(
  index: IndexConnection,
  bucketId: number,
  address: UploadAddress,
): UploadRow | undefined {
  return index
    .sql(
      "select * from uploads where upload_id = ? and bucket = ? and key = ? and completed is null",
    )
    .get(address.uploadId, bucketId, encodeKey(address.key)) as unknown as UploadRow | undefined;
}

/** The key of an upload, also of a completed one: its completion may be repeated. `undefined` if it does not exist. */
export function findUploadKey(
  index: IndexConnection,
  bucketId: number,
  uploadId: string,
): string | undefined {
  const row = index
    .sql("select key from uploads where upload_id = ? and bucket = ?")
    .get(uploadId, bucketId) as { key: Uint8Array } | undefined;
  return row === undefined ? undefined : decodeKey(row.key);
}

/** The part with a number. */
export function findPartRow(
  index: IndexConnection,
  upload: number,
  number: number,
): PartRow | undefined {
  return index
    .sql(
      "select number, blob, size, etag, modified, checksum from parts where upload = ? and number = ?",
    )
    .get(upload, number) as unknown as PartRow | undefined;
}

/** A page of an upload's parts. */
export function listParts(
  index: IndexConnection,
  upload: number,
  page: PageOfParts,
): Omit<ListPartsResult, "upload"> {
  const maxParts = page.maxParts ?? 1000;
  const rows = index
    .sql(
      "select number, blob, size, etag, modified, checksum from parts where upload = ? and number > ? order by number limit ?",
    )
    .all(upload, page.afterPartNumber ?? 0, maxParts + 1) as unknown as PartRow[];
  return cutPage(rows, maxParts);
}

/** A page of the parts that a blob was completed from. */
export function listObjectParts(
  index: IndexConnection,
  blob: number,
  page: PageOfParts,
): ObjectPartsResult {
  const maxParts = page.maxParts ?? 1000;
  const rows = index
    .sql(
      "select number, part as blob, size, etag, modified, checksum from blob_parts " +
        "where blob = ? and number > ? order by number limit ?",
    )
    .all(blob, page.afterPartNumber ?? 0, maxParts + 1) as unknown as PartRow[];
  const count = index.sql("select count(*) n from blob_parts where blob = ?").get(blob);
  return { ...cutPage(rows, maxParts), partsCount: Number(count?.["n"]) };
}

function cutPage(rows: PartRow[], maxParts: number): Omit<ListPartsResult, "upload"> {
  const isTruncated = rows.length > maxParts;
  const parts = rows.slice(0, maxParts).map(buildListedPart);
  const last = parts.at(-1);
  if (!isTruncated || last === undefined) return { parts, isTruncated: false };
  return { parts, isTruncated, nextPartNumber: last.partNumber };
}

function buildListedPart(row: PartRow): ListedPart {
  const part: ListedPart = {
    partNumber: row.number,
    sizeBytes: row.size,
    etag: row.etag,
    modifiedMs: row.modified,
  };
  if (row.checksum !== null) part.checksum = parsePartChecksums(row.checksum)[0];
  return part;
}

/** A page of a bucket's uploads, by key, then by start time. */
export function listUploads(index: IndexConnection, query: ListUploadsQuery): ListUploadsResult {
  const page: ListUploadsResult = { uploads: [], commonPrefixes: [], isTruncated: false };
  const max = query.maxUploads ?? 1000;
  if (max === 0) return page;
  const prefix = query.prefix ?? "";
  const delimiter = query.delimiter === undefined ? undefined : Buffer.from(query.delimiter);
  const prefixBytes = Buffer.byteLength(prefix);
  let range = buildKeyRange(prefix, query.after);
  const isFull = () => {
    page.isTruncated = page.uploads.length + page.commonPrefixes.length >= max;
    return page.isTruncated;
  };
  const add = (row: UploadRow) => {
    const upload = buildUploadInfo(query.bucket, row);
    page.uploads.push(upload);
    page.next = { value: upload.key, isPrefix: false, uploadId: upload.uploadId };
  };
  const { after } = query;
  if (after?.uploadId !== undefined && !after.isPrefix) {
    for (const row of readRestOfKey(index, query.bucketId, after.value, after.uploadId)) {
      if (isFull()) return page;
      add(row);
    }
  }
  // Adds uploads up to and including the first common prefix. Returns the range after that prefix; `undefined` if the range
  // is done or the page is full.
  const readRange = (from: KeyRange): KeyRange | undefined => {
    for (const row of readUploads(index, query.bucketId, from)) {
      if (isFull()) return undefined;
      const common = findCommonPrefix(viewBytes(row.key), prefixBytes, delimiter);
      if (common === undefined) {
        add(row);
        continue;
      }
      const value = common.toString("utf8");
      page.commonPrefixes.push(value);
      page.next = { value, isPrefix: true };
      const next = findEndOfPrefix(common);
      return next === undefined ? undefined : { from: next, to: from.to };
    }
    return undefined;
  };
  while (range !== undefined) range = readRange(range);
  if (!page.isTruncated) delete page.next;
  return page;
}

function readUploads(
  index: IndexConnection,
  bucketId: number,
  range: KeyRange,
): Iterable<UploadRow> {
  const bound = range.to === undefined ? "" : "and key < ?";
  const values = range.to === undefined ? [] : [range.to];
  return index
    .sql(
      `select * from uploads where bucket = ? and key >= ? ${bound} and completed is null ` +
        "order by key, id limit 1001",
    )
    .iterate(bucketId, range.from, ...values) as unknown as Iterable<UploadRow>;
}

function readRestOfKey(
  index: IndexConnection,
  bucketId: number,
  key: string,
  uploadId: string,
): Iterable<UploadRow> {
  return index
    .sql(
      "select * from uploads where bucket = ? and key = ? and completed is null " +
        "and id > (select id from uploads where upload_id = ?) order by id limit 1001",
    )
    .iterate(bucketId, encodeKey(key), uploadId) as unknown as Iterable<UploadRow>;
}
