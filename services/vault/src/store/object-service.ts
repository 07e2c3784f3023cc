// Objects: put, read, list, delete, change. Copies are in `copy-service.ts`.
import {
  type KeyProvider,
  requireCustomerKey,
  requireNamed,
  requireUsableKey,
} from "../blob/encryption.ts";
import {
  buildObjectInfo,
  formatChecksum,
  type ObjectDetail,
  OwnerReader,
  parsePartChecksums,
  type VersionRow,
} from "../index/records.ts";
import type { Acl } from "../model/acl.ts";
import type { Retention } from "../model/lock.ts";
import type {
  ChangeOrigin,
  CheckKeyUse,
  ByteRange,
  DeleteRequest,
  DeleteResult,
  GetRequest,
  HeadResult,
  ListRequest,
  ListResult,
  ObjectAddress,
  ObjectChecksum,
  ObjectEncryption,
  ObjectInfo,
  OpenObject,
  PutRequest,
  PutResult,
  Upload,
} from "../model/object.ts";
import { requireQuota } from "../model/quota.ts";
import { StoreError } from "../model/store-error.ts";
import { requireFitting, type StoredVector, type VectorStatus } from "../model/vector.ts";
import type { ObjectPartsResult } from "../model/upload.ts";
import type { ListVersionsRequest, ListVersionsResult } from "../model/version.ts";
import { buildListResult } from "../query/list-objects.ts";
import type { PointReader } from "../query/point-reader.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { FoundVersion, StoredVersion } from "../query/stored-version.ts";
import { markDetail } from "../transaction/put-operation.ts";
import type { AttributeChange } from "../transaction/attribute-operations.ts";
import type { BucketState } from "../transaction/writer-context.ts";
import type { IndexWriter, Submit } from "../transaction/writer.ts";
import type { TaskAddress, TriggerRun } from "../model/task.ts";
import { Spool } from "./spool.ts";
import { BodyUpload, type UploadEnvironment } from "./body-upload.ts";
import type { BodyOpener } from "./body.ts";
import type { BucketCatalogue } from "./bucket-catalogue.ts";
import { checkReadConditions } from "./conditions.ts";
import { buildAttributeColumns } from "./new-object.ts";
import { resolveRange } from "./range.ts";
import type { ObjectDescription } from "./record-description.ts";
import { requireAttributes, requireContentLength, requireKey, requireTags } from "./validate.ts";

/** Parts that the services of objects and uploads share. */
export interface ServiceEnvironment extends UploadEnvironment {
  buckets: BucketCatalogue;
  writer: IndexWriter;
  readers: ReaderPool;
  points: PointReader;
  bodies: BodyOpener;
  /** Epoch ms. */
  now: () => number;
  /** A new id for a version or an upload. */
  takeVersionId: () => string;
}

const DELETES_MAX = 1000;

/** The reason of a put that no client has requested. */
export interface PutCause {
  /** Ends with the put, which is refused if the task has begun again. */
  readonly task?: TaskAddress;
  /** The run of a trigger, when its output is complete. */
  readonly run?: () => TriggerRun;
  /** Commits the put together with other work. */
  readonly submit?: Submit;
}

export class ObjectService {
  readonly #env: ServiceEnvironment;
  readonly #owners = new OwnerReader();

  constructor(environment: ServiceEnvironment) {
    this.#env = environment;
  }

  /** Opens a spool for bytes that become an object when their number is known. */
  openSpool(): Spool {
    return new Spool(this.#env.blobs);
  }

  /** Begins a put. Throws immediately what it can check immediately (`NoSuchBucket`, `KeyTooLongError`, `InsufficientStorage`, …). */
  beginPut(request: PutRequest, cause: PutCause = {}): Upload<PutResult> {
    const { buckets, now, takeVersionId } = this.#env;
    const submit: Submit = cause.submit ?? ((operation) => this.#env.writer.submit(operation));
    const state = buckets.requireState(request.bucket);
    const { bucket } = state;
    this.#requirePuttable(state, request);
    const versionId = request.source?.versionId ?? takeVersionId();
    const attributes = buildAttributeColumns(request);
    // The record describes the rule, too: an index that is rebuilt has it.
    const detail = markDetail(attributes.detail, bucket.settings.geoPlacement);
    const columns = detail === attributes.detail ? attributes : { ...attributes, detail };
    const description: ObjectDescription = {
      bucket: request.bucket,
      key: request.key,
      versionId,
      versioned: bucket.versioning === "Enabled",
      at: request.source?.modifiedMs ?? now(),
      columns,
    };
    return new BodyUpload(
      this.#env,
      {
        contentLength: request.contentLength,
        checksum: request.checksum,
        digests: request.digests,
        encryption: request.encryption,
        tenant: request.tenant,
        description,
      },
      async ({ blob, etag, checksum, encryption }) => {
        const nowMs = now();
        const outcome = await submit({
          type: "put",
          ...describeCause(cause),
          object: {
            ...columns,
            bucket: request.bucket,
            key: request.key,
            nowMs,
            versionId,
            size: blob.size,
            etag,
            checksum: formatChecksum(checksum),
            event: request.event ?? "ObjectCreated:Put",
            ...(request.conditions === undefined ? {} : { conditions: request.conditions }),
            ...(request.actor === undefined ? {} : { actor: request.actor }),
          },
          content: { blob },
        });
        return {
          etag,
          versionId: outcome.versionId,
          sizeBytes: blob.size,
          modifiedMs: nowMs,
          ...(checksum === undefined ? {} : { checksum }),
          ...(encryption === undefined ? {} : { encryption }),
        };
      },
    );
  }

  #requirePuttable(state: BucketState, request: PutRequest): void {
    const { settings } = state.bucket;
    requireKey(request.key);
    requireContentLength(request.contentLength);
    requireAttributes(request);
    requireFitting(settings.vectorIndex, request.vector);
    if (settings.quota !== undefined) this.#requireQuota(state, request);
  }

  async head(request: GetRequest): Promise<HeadResult> {
    return this.#resolve(request, this.#find(request));
  }

  /** Metadata that needs no customer key: tags, ACL, lock and owner. */
  async describe(address: ObjectAddress): Promise<ObjectInfo> {
    const { row, isLatest } = this.#find(address);
    return buildObjectInfo(address.bucket, row, isLatest, this.#owners);
  }

  /** Opens an object, or a part of it, for reading. */
  async get(request: GetRequest): Promise<OpenObject> {
    // Compaction or an overwrite may remove the file between the lookup and the opening: retry once.
    for (let attempt = 1; ; attempt += 1) {
      const found = this.#findStored(request);
      const head = this.#resolve(request, found);
      requireStoredKeyUse(head.object.encryption, request.checkKey, this.#env.keys);
      const [start, end] = this.#chooseBytes(head);
      const body = await this.#openBody(found, start, end, request);
      if (body !== undefined) return { ...head, body };
      if (attempt === 2) throw new StoreError("InternalError", "Stored data is missing");
    }
  }

  /** With `submit`, it is committed together with other work, as are copies and new tags. */
  async delete(request: DeleteRequest, submit?: Submit): Promise<DeleteResult> {
    requireKey(request.key);
    const { writer, now, takeVersionId } = this.#env;
    const commit: Submit = submit ?? ((operation) => writer.submit(operation));
    return commit({ type: "delete", request, nowMs: now(), markerId: takeVersionId() });
  }

  /** Deletes up to 1 000 objects. One failure does not stop the others; the results keep the order of the requests. */
  async deleteMany(requests: readonly DeleteRequest[]): Promise<(DeleteResult | StoreError)[]> {
    if (requests.length > DELETES_MAX) {
      throw new StoreError(
        "InvalidRequest",
        `At most ${DELETES_MAX} objects can be deleted together`,
      );
    }
    return Promise.all(
      requests.map((request) =>
        this.delete(request).catch((error: unknown) => {
          if (error instanceof StoreError) return error;
          throw error;
        }),
      ),
    );
  }

  async list(request: ListRequest): Promise<ListResult> {
    const { id } = this.#env.buckets.requireState(request.bucket);
    const page = await this.#env.readers.query("listObjects", { ...request, bucketId: id });
    return buildListResult(page, request.maxKeys);
  }

  async listVersions(request: ListVersionsRequest): Promise<ListVersionsResult> {
    const { id } = this.#env.buckets.requireState(request.bucket);
    return this.#env.readers.query("listVersions", { ...request, bucketId: id });
  }

  /** Replaces the tags (at most 10) of a version; `{}` deletes them. */
  async setTags(
    address: ObjectAddress,
    tags: Readonly<Record<string, string>>,
    origin: ChangeOrigin = {},
    submit?: Submit,
  ): Promise<{ versionId: string }> {
    requireTags(tags);
    return this.#change(address, { kind: "tags", tags }, origin, submit);
  }

  /** The vector of a version, and its id. `undefined` if it has none. */
  readVector(address: ObjectAddress): StoredVector | undefined {
    const { row } = this.#find(address);
    const data = this.#env.points.findVector(row.bucket, row);
    return data === undefined ? undefined : { data, versionId: row.version };
  }

  /** The state of the vector of a version; `undefined` if it has none and none is computed. */
  readVectorStatus(address: ObjectAddress): VectorStatus | undefined {
    const { row } = this.#find(address);
    return this.#env.points.findVectorStatus(row.bucket, row);
  }

  /** Sets the vector of a version (little-endian floats); `undefined` removes it. */
  async setVector(
    address: ObjectAddress,
    vector: Uint8Array | undefined,
  ): Promise<{ versionId: string }> {
    requireKey(address.key);
    const change = vector === undefined ? {} : { vector };
    return this.#env.writer.submit({ type: "setVector", address, ...change });
  }

  async setAcl(
    address: ObjectAddress,
    acl: Acl,
    origin: ChangeOrigin = {},
  ): Promise<{ versionId: string }> {
    return this.#change(address, { kind: "acl", acl }, origin);
  }

  /** `undefined` removes the retention. Throws `AccessDenied` if that would weaken the protection of the version. */
  async setRetention(
    address: ObjectAddress,
    retention: Retention | undefined,
    { bypassGovernance = false, ...origin }: ChangeOrigin & { bypassGovernance?: boolean } = {},
  ): Promise<{ versionId: string }> {
    const change = { kind: "retention", bypassGovernance } as const;
    return this.#change(
      address,
      retention === undefined ? change : { ...change, retention },
      origin,
    );
  }

  async setLegalHold(
    address: ObjectAddress,
    on: boolean,
    origin: ChangeOrigin = {},
  ): Promise<{ versionId: string }> {
    return this.#change(address, { kind: "legalHold", on }, origin);
  }

  #change(
    address: ObjectAddress,
    change: AttributeChange,
    { actor, expected, isReplica }: ChangeOrigin,
    submit?: Submit,
  ): Promise<{ versionId: string }> {
    requireKey(address.key);
    const { writer, now } = this.#env;
    const commit: Submit = submit ?? ((operation) => writer.submit(operation));
    return commit({
      type: "attribute",
      address,
      change,
      nowMs: now(),
      ...(actor === undefined ? {} : { actor }),
      ...(expected === undefined ? {} : { expected }),
      ...(isReplica === true ? { isReplica } : {}),
    });
  }

  /** The parts that an object was completed from, at most 1 000 per page; empty if it was put in one piece. */
  async listParts(
    address: ObjectAddress,
    page: { afterPartNumber?: number; maxParts?: number } = {},
  ): Promise<ObjectPartsResult & { object: ObjectInfo }> {
    const { row, isLatest } = this.#find(address);
    const object = buildObjectInfo(address.bucket, row, isLatest, this.#owners);
    if (object.partsCount === undefined || row.blob === null) {
      return { object, parts: [], partsCount: 0, isTruncated: false };
    }
    return { object, ...(await this.#env.readers.query("listObjectParts", row.blob, page)) };
  }

  #find({ bucket, key, versionId }: ObjectAddress): FoundVersion {
    const state = this.#env.buckets.requireState(bucket);
    return this.#env.points.requireVersion(state, key, versionId);
  }

  #findStored({ bucket, key, versionId }: ObjectAddress): StoredVersion {
    const state = this.#env.buckets.requireState(bucket);
    return this.#env.points.requireStored(state, key, versionId);
  }

  // Refuses an upload to a full bucket before its bytes are sent; the writer makes the final decision.
  #requireQuota({ id, bucket }: BucketState, { key, contentLength }: PutRequest): void {
    const { points } = this.#env;
    const replaced =
      bucket.versioning === "Enabled" ? undefined : points.measureNullVersion(id, key);
    const versions = replaced === undefined ? 1 : 0;
    requireQuota(bucket, points.readUsage(id), contentLength - (replaced ?? 0), versions);
  }

  #resolve(request: GetRequest, { row, isLatest }: FoundVersion): HeadResult {
    const object = buildObjectInfo(request.bucket, row, isLatest, this.#owners);
    requireCustomerKey(object.encryption, request.customerKey);
    checkReadConditions(request.conditions, row, false, object.headers);
    if (request.partNumber !== undefined) {
      return this.#resolvePart(object, row, request.partNumber);
    }
    if (request.range === undefined) return { object, contentLength: row.size };
    const range = resolveRange(request.range, row.size);
    if (range === undefined) return { object, contentLength: row.size };
    const contentLength = range.end - range.start + 1;
    // A checksum is returned only if it covers exactly the bytes that are read; for most ranges it is unknown.
    if (contentLength < row.size) delete object.checksum;
    return { object, range, contentLength };
  }

  #resolvePart(object: ObjectInfo, row: VersionRow, partNumber: number): HeadResult {
    const whole = object.partsCount === undefined && partNumber === 1;
    const part =
      whole || row.blob === null
        ? { start: 0, size: row.size }
        : this.#env.points.findPart(row.blob, partNumber);
    if (part === undefined || (object.partsCount === undefined && !whole)) {
      throw new StoreError("InvalidPartNumber", "The requested partnumber is not satisfiable");
    }
    if ("checksum" in part) {
      if (part.checksum === null) delete object.checksum;
      else object.checksum = describePart(part.checksum, object.checksum);
    }
    // No range can express an empty part.
    if (part.size === 0) return { object, contentLength: 0 };
    const range: ByteRange = { start: part.start, end: part.start + part.size - 1 };
    return { object, range, contentLength: part.size };
  }

  #chooseBytes({ range, contentLength }: HeadResult): [start: number, end: number] {
    if (range !== undefined) return [range.start, range.end + 1];
    return [0, contentLength];
  }

  #openBody(
    { row, blob }: StoredVersion,
    start: number,
    end: number,
    { customerKey, window }: GetRequest,
  ) {
    if (row.blob === null) throw new StoreError("InternalError", "The object has no body");
    return this.#env.bodies.open(blob, start, end, customerKey, window);
  }
}

/** Checks that a body under a named key may be opened, also where its bytes need not be decrypted. */
export function requireKeyUse(
  encryption: ObjectEncryption | undefined,
  checkKey: CheckKeyUse | undefined,
  keys: KeyProvider | undefined,
): void {
  if (encryption?.type !== "SSE-KMS") return;
  checkKey?.(encryption.keyId);
  requireNamed(keys).requireUsable(encryption.keyId);
}

/** As `requireKeyUse`, for a stored body: a key that is not there is ServiceUnavailable. */
export function requireStoredKeyUse(
  encryption: ObjectEncryption | undefined,
  checkKey: CheckKeyUse | undefined,
  keys: KeyProvider | undefined,
): void {
  if (encryption?.type !== "SSE-KMS") return;
  checkKey?.(encryption.keyId);
  requireUsableKey(keys, encryption.keyId);
}

// With the checksum type of the object, as S3 answers it.
function describePart(text: string, whole: ObjectChecksum | undefined): ObjectChecksum {
  const [checksum] = parsePartChecksums(text);
  return whole === undefined ? checksum : { ...checksum, type: whole.type };
}

function describeCause({ task, run }: PutCause) {
  return {
    ...(task === undefined ? {} : { task }),
    ...(run === undefined ? {} : { run: run() }),
  };
}

/** The detail of a row. */
export function parseDetail(row: VersionRow): ObjectDetail {
  return JSON.parse(row.detail) as ObjectDetail;
}
