// Multipart uploads: create, add parts, complete or abort, list.
import { requireCustomerKey } from "../blob/encryption.ts";
import {
  formatPartChecksums,
  type ObjectDetail,
  parseChecksum,
  type VersionRow,
} from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import { BodyUpload } from "./body-upload.ts";
import { pump, type CopyService, type FoundSource } from "./copy-service.ts";
import { buildAttributeColumns } from "./new-object.ts";
import { parseDetail, requireKeyUse, type ServiceEnvironment } from "./object-service.ts";
import type { GeoMark } from "../model/geo.ts";
import { resolveRange } from "./range.ts";
import type {
  BodyDigests,
  CheckKeyUse,
  ChecksumAlgorithm,
  EncryptionRequest,
  ObjectChecksum,
  ObjectEncryption,
  PutResult,
  Upload,
} from "../model/object.ts";
import { requireAttributes, requireContentLength, requireKey } from "./validate.ts";
import { StoreError } from "../model/store-error.ts";
import { requireFitting } from "../model/vector.ts";
import { requireQuota } from "../model/quota.ts";
import {
  buildUploadInfo,
  findPartRow,
  findUpload,
  findUploadKey,
  listParts,
  type PageOfParts,
} from "../query/list-uploads.ts";
import type {
  CompleteUploadRequest,
  CopyPartRequest,
  CreateUploadRequest,
  ListPartsResult,
  ListUploadsRequest,
  ListUploadsResult,
  PartResult,
  PutPartRequest,
  UploadAddress,
  UploadInfo,
} from "../model/upload.ts";
import { noSuchUpload } from "../transaction/upload-operations.ts";
import type { ManifestPart, UploadDetail, UploadRow } from "../transaction/upload-rows.ts";

const PART_NUMBER_MAX = 10_000;
const ATTEMPTS_MAX = 5;

/** Multipart uploads. */
export class MultipartService {
  readonly #env: ServiceEnvironment;
  readonly #copies: CopyService;
  readonly #index: IndexConnection;

  /** `index` is read on the event loop, for single uploads and pages of parts. */
  constructor(environment: ServiceEnvironment, copies: CopyService, index: IndexConnection) {
    this.#env = environment;
    this.#copies = copies;
    this.#index = index;
  }

  async create(request: CreateUploadRequest): Promise<UploadInfo> {
    const { buckets, writer, now, takeVersionId } = this.#env;
    const { settings } = buckets.require(request.bucket);
    requireKey(request.key);
    requireAttributes(request);
    requireFitting(settings.vectorIndex, request.vector);
    if (request.checksum !== undefined) requireChecksumType(request.checksum);
    const address = { bucket: request.bucket, key: request.key, uploadId: takeVersionId() };
    const detail: UploadDetail = {
      object: buildAttributeColumns(request),
      ...(request.initiator === undefined ? {} : { initiator: request.initiator }),
      ...(request.checksum === undefined ? {} : { checksum: request.checksum }),
    };
    const nowMs = now();
    await writer.submit({ type: "createUpload", address, detail, nowMs });
    return buildUploadInfo(request.bucket, {
      id: 0,
      upload_id: address.uploadId,
      bucket: 0,
      key: Buffer.from(request.key),
      created: nowMs,
      detail: JSON.stringify(detail),
      completed: null,
      result: null,
    });
  }

  /** Throws immediately what it can check immediately. The commit checks again that the upload exists. */
  beginPart(request: PutPartRequest): Upload<PartResult> {
    requirePartNumber(request.partNumber);
    requireContentLength(request.contentLength);
    const detail = this.#requireDetail(request);
    const { writer, now } = this.#env;
    const checksum = detail.checksum?.algorithm ?? request.checksum;
    const beside = request.checksum === checksum ? undefined : request.checksum;
    if (beside !== undefined && detail.checksum?.isDefault !== true) {
      throw new StoreError(
        "InvalidRequest",
        `Checksum Type mismatch occurred, expected checksum Type: ${checksum?.toLowerCase()}, actual checksum Type: ${beside.toLowerCase()}`,
      );
    }
    const { bucket, key, uploadId, partNumber } = request;
    this.#requireQuota(request);
    return new BodyUpload(
      this.#env,
      {
        contentLength: request.contentLength,
        checksum,
        digests: beside === undefined ? request.digests : [...(request.digests ?? []), beside],
        encryption: this.#chooseEncryption(detail, request),
        tenant: request.tenant,
        description: { bucket, key, uploadId, partNumber, at: now() },
      },
      async ({ blob, etag, checksum: computed, encryption, digests }) => {
        const nowMs = now();
        const given = beside === undefined ? undefined : describeDigest(beside, digests);
        const answered = given ?? computed;
        await writer.submit({
          type: "putPart",
          address: { bucket, key, uploadId },
          partNumber,
          size: blob.size,
          etag,
          checksum: formatPartChecksums(computed, given),
          content: { blob },
          nowMs,
          ...(request.geo === undefined ? {} : { geo: request.geo }),
        });
        return {
          etag,
          sizeBytes: blob.size,
          modifiedMs: nowMs,
          ...(answered === undefined ? {} : { checksum: answered }),
          ...(encryption === undefined ? {} : { encryption }),
        };
      },
    );
  }

  #chooseEncryption(detail: UploadDetail, { encryption, checkKey }: PutPartRequest) {
    const chosen = chooseEncryption(detail, encryption);
    if (chosen?.type === "SSE-KMS") requireKeyUse(chosen, checkKey, this.#env.keys);
    return chosen;
  }

  async copyPart(request: CopyPartRequest): Promise<PartResult & { sourceVersionId: string }> {
    requirePartNumber(request.partNumber);
    const detail = this.#requireDetail(request);
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const source = this.#copies.find(request.source);
      if (source === undefined) continue;
      requireRangeWithin(request.range, source.row.size);
      requireKeyUse(readEncryption(detail), request.checkKey, this.#env.keys);
      const result = mayShare(request, detail, source)
        ? await this.#sharePart(request, source)
        : await this.#copyPartBytes(request, source);
      if (result !== undefined) return { ...result, sourceVersionId: source.row.version };
    }
    throw new StoreError("SlowDown", "The source changes faster than it can be copied");
  }

  // Refuses an upload to a full bucket before its bytes are sent; the writer makes the final decision.
  #requireQuota({ bucket: name, uploadId, partNumber, contentLength }: PutPartRequest): void {
    const { buckets, points } = this.#env;
    const { id, bucket } = buckets.requireState(name);
    if (bucket.settings.quota === undefined) return;
    const replaced = points.measurePart(uploadId, partNumber);
    requireQuota(bucket, points.readUsage(id), contentLength - replaced, 0);
  }

  /**
   * A repeated call after success returns the same result for 24 h. `checkKey` is called before parts under a named key are
   * put together.
   */
  async complete(request: CompleteUploadRequest, checkKey?: CheckKeyUse): Promise<PutResult> {
    requireKey(request.key);
    const found = this.#findOpen(request);
    if (found !== undefined) requireKeyUse(readEncryption(found), checkKey, this.#env.keys);
    const { writer, blobs, now, takeVersionId } = this.#env;
    if (request.parts.length > PART_NUMBER_MAX) {
      throw new StoreError("InvalidRequest", `An object has at most ${PART_NUMBER_MAX} parts`);
    }
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const blobId = blobs.takeId();
      const nowMs = now();
      const named = this.#nameBlobs(request);
      const { source } = named;
      const versionId = source?.versionId ?? takeVersionId();
      // The data needed to find the object again without an index; it is referenced only if the completion succeeds.
      const endWrite = blobs.writes.begin();
      let pinned: number | undefined;
      try {
        const manifest = await blobs.appendManifest(blobId, {
          bucket: request.bucket,
          key: request.key,
          versionId,
          at: source?.modifiedMs ?? nowMs,
          parts: named.parts,
          ...named.description,
        });
        pinned = manifest.segment;
        const outcome = await writer.submit({
          type: "completeUpload",
          request,
          versionId,
          blobId,
          manifest,
          blobs: named.parts.map(({ blob }) => blob),
          nowMs,
        });
        if ("result" in outcome) return outcome.result;
      } finally {
        if (pinned !== undefined) blobs.segments.unpin(pinned);
        endWrite();
      }
    }
    throw new StoreError("SlowDown", "The parts change faster than they can be completed");
  }

  #findOpen(address: UploadAddress): UploadDetail | undefined {
    const { id } = this.#env.buckets.requireState(address.bucket);
    const upload = findUpload(this.#index, id, address);
    return upload === undefined ? undefined : (JSON.parse(upload.detail) as UploadDetail);
  }

  // The writer validates the request.
  #nameBlobs(request: CompleteUploadRequest) {
    const { id, bucket } = this.#env.buckets.requireState(request.bucket);
    const upload = findUpload(this.#index, id, request);
    const parts: ManifestPart[] = [];
    if (upload === undefined) return { parts, source: undefined, description: {} };
    const { object } = JSON.parse(upload.detail) as UploadDetail;
    for (const { partNumber } of request.parts) {
      const row = findPartRow(this.#index, upload.id, partNumber);
      if (row !== undefined) parts.push({ ...row });
    }
    const { vector } = request;
    const columns = vector === undefined ? object : { ...object, vector };
    const versioned = bucket.versioning === "Enabled";
    return { parts, source: object.source, description: { columns, versioned } };
  }

  /** Throws `NoSuchUpload` if it was completed or aborted. */
  async abort(address: UploadAddress): Promise<void> {
    await this.#env.writer.submit({ type: "abortUpload", address });
  }

  async get(address: UploadAddress): Promise<UploadInfo> {
    return buildUploadInfo(address.bucket, this.#requireUpload(address));
  }

  /** The key of an upload, also of a completed one. Throws `NoSuchUpload`. */
  findKey(bucket: string, uploadId: string): string {
    const { id } = this.#env.buckets.requireState(bucket);
    const key = findUploadKey(this.#index, id, uploadId);
    if (key === undefined) throw noSuchUpload({ bucket, key: "", uploadId });
    return key;
  }

  async listParts(address: UploadAddress, page: PageOfParts = {}): Promise<ListPartsResult> {
    const upload = this.#requireUpload(address);
    return {
      upload: buildUploadInfo(address.bucket, upload),
      ...listParts(this.#index, upload.id, page),
    };
  }

  async list(request: ListUploadsRequest): Promise<ListUploadsResult> {
    const { id } = this.#env.buckets.requireState(request.bucket);
    return this.#env.readers.query("listUploads", { ...request, bucketId: id });
  }

  #requireUpload(address: UploadAddress): UploadRow {
    const { id } = this.#env.buckets.requireState(address.bucket);
    const upload = findUpload(this.#index, id, address);
    if (upload === undefined) throw noSuchUpload(address);
    return upload;
  }

  #requireDetail(address: UploadAddress): UploadDetail {
    return JSON.parse(this.#requireUpload(address).detail) as UploadDetail;
  }

  async #sharePart(
    { bucket, key, uploadId, partNumber }: CopyPartRequest,
    { row, blob }: FoundSource,
  ): Promise<PartResult | undefined> {
    const nowMs = this.#env.now();
    const { gone } = await this.#env.writer.submit({
      type: "putPart",
      address: { bucket, key, uploadId },
      partNumber,
      size: row.size,
      etag: row.etag,
      checksum: row.checksum,
      content: { share: blob.id },
      nowMs,
      ...readGeo(row),
    });
    if (gone === true) return undefined;
    return {
      etag: row.etag,
      sizeBytes: row.size,
      modifiedMs: nowMs,
      ...(row.checksum === null ? {} : { checksum: parseChecksum(row.checksum) }),
    };
  }

  async #copyPartBytes(
    request: CopyPartRequest,
    source: FoundSource,
  ): Promise<PartResult | undefined> {
    const { size } = source.row;
    const wanted = request.range === undefined ? undefined : resolveRange(request.range, size);
    const range = wanted ?? { start: 0, end: size - 1 };
    const { bucket, key, uploadId, partNumber, encryption } = request;
    const body = await this.#copies.open(
      source,
      range.start,
      range.end + 1,
      request.source.customerKey,
    );
    if (body === undefined) return undefined;
    try {
      const upload = this.beginPart({
        bucket,
        key,
        uploadId,
        partNumber,
        contentLength: range.end + 1 - range.start,
        ...(encryption === undefined ? {} : { encryption }),
        ...readGeo(source.row),
      });
      return await pump(body, upload);
    } finally {
      body.close();
    }
  }
}

// The mark of a source that is copied into a part.
function readGeo(row: VersionRow): { geo?: GeoMark } {
  const { geo } = parseDetail(row);
  return geo === undefined ? {} : { geo };
}

function describeDigest(algorithm: ChecksumAlgorithm, { checksums }: BodyDigests): ObjectChecksum {
  return { algorithm, value: checksums[algorithm]!.toString("base64"), type: "FULL_OBJECT" };
}

function requirePartNumber(partNumber: number): void {
  if (Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= PART_NUMBER_MAX) return;
  throw new StoreError(
    "InvalidArgument",
    `Part number must be an integer between 1 and ${PART_NUMBER_MAX}, inclusive`,
  );
}

// Unlike the range of a read, the range of a copy must lie within its source.
function requireRangeWithin(range: CopyPartRequest["range"], size: number): void {
  if (range === undefined || !("start" in range) || (range.end ?? range.start) < size) return;
  throw new StoreError(
    "InvalidArgument",
    `Range specified is not valid for source object of size: ${size}`,
  );
}

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html
function requireChecksumType({ algorithm, type }: NonNullable<UploadDetail["checksum"]>): void {
  const isHash = algorithm === "SHA1" || algorithm === "SHA256";
  const isAllowed = type === "FULL_OBJECT" ? !isHash : algorithm !== "CRC64NVME";
  if (isAllowed) return;
  throw new StoreError(
    "InvalidRequest",
    `The ${type} checksum type cannot be used with the ${algorithm} checksum algorithm.`,
  );
}

function readEncryption({ object }: UploadDetail): ObjectEncryption | undefined {
  return (JSON.parse(object.detail) as ObjectDetail).encryption;
}

function chooseEncryption(
  detail: UploadDetail,
  given: Extract<EncryptionRequest, { type: "SSE-C" }> | undefined,
): EncryptionRequest | undefined {
  const encryption = readEncryption(detail);
  if (encryption?.type === "SSE-C" && given === undefined) {
    throw new StoreError(
      "InvalidRequest",
      "The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.",
    );
  }
  try {
    requireCustomerKey(encryption, given?.key);
  } catch (error) {
    // This is not a denied access: the parameters differ from those that created the upload.
    throw error instanceof StoreError && error.code === "AccessDenied"
      ? new StoreError(
          "InvalidRequest",
          "The provided encryption parameters did not match the ones used originally.",
        )
      : error;
  }
  return given ?? (encryption?.type === "SSE-C" ? undefined : encryption);
}

// A part is shared if it is a whole body in one piece, with the encryption and the checksum of the upload.
function mayShare(request: CopyPartRequest, detail: UploadDetail, source: FoundSource): boolean {
  const { row, blob } = source;
  const isWhole =
    request.range === undefined ||
    ("start" in request.range &&
      request.range.start === 0 &&
      (request.range.end === undefined || request.range.end >= row.size - 1));
  const { kind } = blob.place;
  if (!isWhole || kind === "parts" || kind === "remote" || request.encryption !== undefined)
    return false;
  const encryption = readEncryption(detail);
  if (encryption?.type !== blob.cipher?.type || blob.cipher?.type === "SSE-C") return false;
  if (encryption?.type === "SSE-KMS") {
    const { key, context } = blob.cipher ?? {};
    if (key !== encryption.keyId || context !== encryption.context) return false;
  }
  if (detail.checksum === undefined) return true;
  return row.checksum?.startsWith(`${detail.checksum.algorithm}:F:`) === true;
}
