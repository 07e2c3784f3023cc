// Copies within the store: bytes are shared if they can stay as they are, and copied otherwise.
import { requireCustomerKey } from "../blob/encryption.ts";
import type { BlobRecord } from "../model/blob.ts";
import { parseChecksum, parseOwner, type VersionRow } from "../index/records.ts";
import { StoreError } from "../model/store-error.ts";
import { FLOAT_BYTES, requireFitting } from "../model/vector.ts";
import { checkReadConditions } from "./conditions.ts";
import { buildAttributeColumns } from "./new-object.ts";
import {
  parseDetail,
  requireStoredKeyUse,
  type ObjectService,
  type ServiceEnvironment,
} from "./object-service.ts";
import type {
  CopyRequest,
  CopyResult,
  EncryptionRequest,
  NamedEncryption,
  ObjectAttributes,
  ObjectBody,
  ObjectEncryption,
  PutRequest,
  Upload,
} from "../model/object.ts";
import type { Submit } from "../transaction/writer.ts";
import { requireAttributes, requireKey } from "./validate.ts";

/** The source of a copy. */
export type CopySource = CopyRequest["source"];

/** A source that was looked up. */
export interface FoundSource {
  row: VersionRow;
  blob: BlobRecord;
}

// A source that is overwritten during the copy is looked up again.
const ATTEMPTS_MAX = 5;

/** Copies objects. */
export class CopyService {
  readonly #env: ServiceEnvironment;
  readonly #objects: ObjectService;

  constructor(environment: ServiceEnvironment, objects: ObjectService) {
    this.#env = environment;
    this.#objects = objects;
  }

  async copy(request: CopyRequest, submit?: Submit): Promise<CopyResult> {
    requireKey(request.key);
    requireAttributes(request.attributes);
    const { settings } = this.#env.buckets.require(request.bucket);
    requireFitting(settings.vectorIndex, request.attributes.vector);
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const source = this.find(request.source);
      if (source === undefined) continue;
      // The bytes of a copy are here: a copy of an object onto itself brings it back from a remote.
      const isRemote = this.#env.points.isRemote(source.blob);
      if (!isRemote) requireChange(request);
      const attributes = chooseAttributes(request, source.row);
      const vector = attributes.vector ?? this.#findFitting(request.bucket, source.row);
      if (vector !== undefined) attributes.vector = vector;
      if (isRemote) keepEncryption(attributes, source.row);
      const result =
        !isRemote && mayShare(request, source)
          ? await this.#share(request, source, attributes, submit)
          : await this.#copyBytes(request, source, attributes, submit);
      if (result !== undefined) return { ...result, sourceVersionId: source.row.version };
    }
    throw new StoreError("SlowDown", "The source changes faster than it can be copied");
  }

  // A copy has the vector of its source if it fits the index of its bucket.
  #findFitting(bucket: string, row: VersionRow): Uint8Array | undefined {
    const { vectorIndex } = this.#env.buckets.require(bucket).settings;
    if (vectorIndex === undefined) return undefined;
    const vector = this.#env.points.findVector(row.bucket, row);
    const bytes = vectorIndex.dimension * FLOAT_BYTES;
    return vector?.length === bytes ? vector : undefined;
  }

  /** Looks up the source and checks its conditions. `undefined` if it changed meanwhile. */
  find(address: CopySource): FoundSource | undefined {
    const state = this.#env.buckets.requireState(address.bucket);
    const { row, blob } = this.#env.points.requireStored(state, address.key, address.versionId);
    const { encryption } = parseDetail(row);
    requireCustomerKey(encryption, address.customerKey);
    requireStoredKeyUse(encryption, address.checkKey, this.#env.keys);
    checkReadConditions(address.conditions, row, true);
    return blob === undefined ? undefined : { row, blob };
  }

  /** Opens the bytes `start` up to `end` of a source. */
  async open(
    { blob }: FoundSource,
    start: number,
    end: number,
    customerKey?: Buffer,
  ): Promise<ObjectBody | undefined> {
    // It may have moved since the lookup.
    const { bodies, points } = this.#env;
    return bodies.open(points.findBlob(blob.id), start, end, customerKey);
  }

  async #share(
    request: CopyRequest,
    { row }: FoundSource,
    attributes: ObjectAttributes,
    submit: Submit | undefined,
  ): Promise<Omit<CopyResult, "sourceVersionId"> | undefined> {
    const { writer, now, takeVersionId } = this.#env;
    const nowMs = now();
    const columns = buildAttributeColumns(attributes);
    const source = parseDetail(row);
    // The bytes stay as they are, including encryption and parts, and the object records that.
    const kept = {
      ...(source.encryption === undefined ? {} : { encryption: source.encryption }),
      ...(source.parts === undefined ? {} : { parts: source.parts }),
    };
    const detail = JSON.stringify({ ...(JSON.parse(columns.detail) as object), ...kept });
    const commit: Submit = submit ?? ((operation) => writer.submit(operation));
    const outcome = await commit({
      type: "put",
      object: {
        ...columns,
        detail,
        bucket: request.bucket,
        key: request.key,
        nowMs,
        versionId: attributes.source?.versionId ?? takeVersionId(),
        size: row.size,
        etag: row.etag,
        checksum: row.checksum,
        event: request.event ?? "ObjectCreated:Copy",
        ...(request.conditions === undefined ? {} : { conditions: request.conditions }),
        ...(request.actor === undefined ? {} : { actor: request.actor }),
      },
      content: { share: row.blob ?? 0 },
    });
    if (outcome.gone === true) return undefined;
    return {
      etag: row.etag,
      versionId: outcome.versionId,
      sizeBytes: row.size,
      modifiedMs: nowMs,
      ...(row.checksum === null ? {} : { checksum: parseChecksum(row.checksum) }),
      ...(source.encryption === undefined ? {} : { encryption: source.encryption }),
    };
  }

  async #copyBytes(
    request: CopyRequest,
    source: FoundSource,
    attributes: ObjectAttributes,
    submit: Submit | undefined,
  ): Promise<Omit<CopyResult, "sourceVersionId"> | undefined> {
    const body = await this.open(source, 0, source.row.size, request.source.customerKey);
    if (body === undefined) return undefined;
    const checksum =
      request.checksum ??
      (source.row.checksum === null ? undefined : parseChecksum(source.row.checksum).algorithm);
    const upload = this.#beginPut(request, attributes, source.row.size, checksum, body, submit);
    return pump(body, upload);
  }

  #beginPut(
    request: CopyRequest,
    attributes: ObjectAttributes,
    contentLength: number,
    checksum: CopyRequest["checksum"],
    body: ObjectBody,
    submit: Submit | undefined,
  ) {
    const put: PutRequest = {
      ...attributes,
      bucket: request.bucket,
      key: request.key,
      contentLength,
      event: request.event ?? "ObjectCreated:Copy",
      ...(checksum === undefined ? {} : { checksum }),
      ...(request.conditions === undefined ? {} : { conditions: request.conditions }),
      ...(request.actor === undefined ? {} : { actor: request.actor }),
    };
    try {
      return this.#objects.beginPut(put, submit === undefined ? {} : { submit });
    } catch (error) {
      body.close();
      throw error;
    }
  }
}

/** Copies a whole body into an upload and commits it. */
export async function pump<Result>(body: ObjectBody, upload: Upload<Result>): Promise<Result> {
  try {
    for await (const chunk of body.chunks()) {
      await upload.write(chunk);
      body.recycle(chunk);
    }
    return await upload.commit();
  } catch (error) {
    await upload.abort();
    throw error;
  } finally {
    body.close();
  }
}

function requireChange(request: CopyRequest): void {
  const { source, attributes } = request;
  const isSelf =
    source.bucket === request.bucket &&
    source.key === request.key &&
    source.versionId === undefined;
  const changes =
    request.metadataDirective === "REPLACE" ||
    request.taggingDirective === "REPLACE" ||
    attributes.storageClass !== undefined ||
    attributes.websiteRedirect !== undefined ||
    attributes.encryption !== undefined ||
    request.checksum !== undefined;
  if (!isSelf || changes) return;
  throw new StoreError(
    "InvalidRequest",
    "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
  );
}

// Bytes that are copied would be in the clear without it; shared ones stay encrypted.
function keepEncryption(attributes: ObjectAttributes, row: VersionRow): void {
  const { encryption } = parseDetail(row);
  if (
    attributes.encryption === undefined &&
    encryption !== undefined &&
    encryption.type !== "SSE-C"
  )
    attributes.encryption = encryption;
}

function mayShare(request: CopyRequest, { row, blob }: FoundSource): boolean {
  const { encryption } = request.attributes;
  const wantsChecksum =
    request.checksum !== undefined &&
    (row.checksum === null || parseChecksum(row.checksum).algorithm !== request.checksum);
  if (wantsChecksum) return false;
  return isEncryptedAs(parseDetail(row).encryption, blob.cipher?.type, encryption);
}

// With a customer's key every copy needs a new key; data that the store has encrypted stays encrypted. A named key and its
// context are those of the bytes.
function isEncryptedAs(
  found: ObjectEncryption | undefined,
  cipher: EncryptionRequest["type"] | undefined,
  wanted: EncryptionRequest | undefined,
): boolean {
  const type = found?.type ?? cipher;
  if (type === "SSE-C" || wanted?.type === "SSE-C") return false;
  if (wanted === undefined) return true;
  if (wanted.type !== "SSE-KMS") return type === wanted.type;
  return found?.type === "SSE-KMS" && isSameNamed(found, wanted);
}

function isSameNamed(found: NamedEncryption, wanted: NamedEncryption): boolean {
  const { keyId, context, bucketKey = false } = wanted;
  return (
    found.keyId === keyId && found.context === context && (found.bucketKey ?? false) === bucketKey
  );
}

function chooseAttributes(request: CopyRequest, row: VersionRow): ObjectAttributes {
  const source = parseDetail(row);
  const chosen: ObjectAttributes = { ...request.attributes };
  if (request.metadataDirective !== "REPLACE") {
    if (source.headers !== undefined) chosen.headers = source.headers;
    else delete chosen.headers;
    if (source.metadata !== undefined) chosen.metadata = source.metadata;
    else delete chosen.metadata;
  }
  if (request.taggingDirective !== "REPLACE") {
    if (row.tags === null) delete chosen.tags;
    else chosen.tags = JSON.parse(row.tags) as Record<string, string>;
  }
  if (source.geo !== undefined) chosen.geo = source.geo;
  if (chosen.owner === undefined && row.owner !== null) chosen.owner = parseOwner(row.owner);
  return chosen;
}
