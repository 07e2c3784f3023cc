// An incoming body, from its first byte to its row in the index: hashed, encrypted, stored, committed.
import { createHash } from "node:crypto";
import type { BlobStore } from "../blob/blob-store.ts";
import type { BlobWriter } from "../blob/staged-writer.ts";
import {
  BodyEncryptor,
  createBlobKey,
  describeEncryption,
  measureCiphertext,
  type KeyProvider,
} from "../blob/encryption.ts";
import type { RecordDescription, RecordSummary } from "./record-description.ts";
import type { BlobCipher, BlobId, BlobRecord } from "../model/blob.ts";
import type { BodyHasher } from "../hash/body-hasher.ts";
import type { BodyHashers } from "../hash/body-hashers.ts";
import { isOutcomeUnknown, StoreError } from "../model/store-error.ts";
import type {
  BodyDigests,
  ChecksumAlgorithm,
  EncryptionRequest,
  ObjectChecksum,
  ObjectEncryption,
  Upload,
} from "../model/object.ts";

/** Parts that all uploads share. */
export interface UploadEnvironment {
  blobs: BlobStore;
  hashers: BodyHashers;
  keys: KeyProvider | undefined;
}

/** Options of an upload. */
export interface BodyRequest {
  contentLength: number;
  checksum: ChecksumAlgorithm | undefined;
  digests: readonly ChecksumAlgorithm[] | undefined;
  encryption: EncryptionRequest | undefined;
  /** Tenant that its memory is charged to; "" for the service itself. */
  tenant: string | undefined;
  /** Written to the head of the record. */
  description: RecordDescription;
}

/** A stored body without a reference in the index. */
export interface StoredBody {
  blob: BlobRecord;
  etag: string;
  checksum: ObjectChecksum | undefined;
  encryption: ObjectEncryption | undefined;
  digests: BodyDigests;
}

type State = "open" | "finished" | "committed" | "ended";

/** Implements `Upload` with a blob writer; `commit` makes the stored body an object or a part. */
export class BodyUpload<Result> implements Upload<Result> {
  readonly #request: BodyRequest;
  readonly #id: BlobId;
  readonly #writer: BlobWriter;
  readonly #encryptor: BodyEncryptor | undefined;
  readonly #cipher: BlobCipher | undefined;
  readonly #stored: number;
  readonly #hasher: BodyHasher;
  readonly #commit: (body: StoredBody) => Promise<Result>;
  readonly #unpin: (segment: number) => void;
  readonly #endWrite: () => void;
  #bytes = 0;
  #state: State = "open";
  #digests: BodyDigests | undefined;

  constructor(
    { blobs, hashers, keys }: UploadEnvironment,
    request: BodyRequest,
    commit: (body: StoredBody) => Promise<Result>,
  ) {
    this.#request = request;
    this.#commit = commit;
    this.#unpin = (segment) => blobs.segments.unpin(segment);
    this.#id = blobs.takeId();
    const { encryption, contentLength } = request;
    this.#stored = encryption === undefined ? contentLength : measureCiphertext(contentLength);
    if (encryption !== undefined) {
      const { key, cipher } = createBlobKey(encryption, keys, this.#id);
      this.#cipher = cipher;
      this.#encryptor = new BodyEncryptor(key, contentLength);
    }
    const description =
      this.#cipher === undefined
        ? request.description
        : { ...request.description, size: contentLength, cipher: this.#cipher };
    const { tenant = "" } = request;
    this.#writer = blobs.begin({ id: this.#id, stored: this.#stored, description, tenant });
    const { checksum, digests = [] } = request;
    this.#hasher = hashers.begin(contentLength, [
      ...new Set(checksum === undefined ? digests : [checksum, ...digests]),
    ]);
    this.#endWrite = blobs.writes.begin();
  }

  write(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#state !== "open") throw new StoreError("InvalidRequest", "The upload has ended");
    if (chunk.length === 0) return undefined;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#request.contentLength) {
      throw new StoreError("EntityTooLarge", "The body is longer than declared");
    }
    const hashing = this.#hasher.update(chunk);
    // An immediate failure would otherwise be an unhandled rejection.
    hashing?.catch(() => undefined);
    const writing =
      this.#encryptor === undefined
        ? this.#writer.write(chunk)
        : this.#writeFrames(this.#encryptor.update(chunk));
    if (hashing === undefined || writing === undefined) return hashing ?? writing;
    return Promise.all([hashing, writing]).then(() => undefined);
  }

  async finish(): Promise<BodyDigests> {
    if (this.#digests !== undefined) return this.#digests;
    if (this.#state !== "open") throw new StoreError("InvalidRequest", "The upload has ended");
    if (this.#bytes < this.#request.contentLength) {
      throw new StoreError(
        "IncompleteBody",
        "You did not provide the number of bytes specified by the Content-Length HTTP header",
      );
    }
    if (this.#encryptor !== undefined) await this.#writeFrames(this.#encryptor.final());
    const digests = await this.#hasher.digest();
    if (this.#hasEnded()) throw new StoreError("InvalidRequest", "The upload has ended");
    this.#digests = digests;
    this.#state = "finished";
    return digests;
  }

  async commit(): Promise<Result> {
    const digests = await this.finish();
    if (this.#state !== "finished") throw new StoreError("InvalidRequest", "The upload has ended");
    this.#state = "committed";
    const etag = this.#chooseEtag(digests);
    const checksum = this.#chooseChecksum(digests);
    const summary: RecordSummary = { etag, ...(checksum === undefined ? {} : { checksum }) };
    const { place, extent } = await this.#seal(summary);
    const blob: BlobRecord = {
      id: this.#id,
      size: this.#bytes,
      stored: this.#stored,
      place,
      extent,
      ...(this.#cipher === undefined ? {} : { cipher: this.#cipher }),
    };
    try {
      const encryption = describeEncryption(this.#request.encryption);
      return await this.#commit({ blob, etag, checksum, encryption, digests });
    } catch (error) {
      // If it is unknown whether the index refers to the bytes, they stay.
      if (!isOutcomeUnknown(error)) await this.#writer.discard();
      throw error;
    } finally {
      if (place.kind === "segment") this.#unpin(place.segment);
      this.#endWrite();
    }
  }

  async #seal(summary: RecordSummary) {
    try {
      return await this.#writer.seal(summary);
    } catch (error) {
      this.#endWrite();
      throw error;
    }
  }

  async abort(): Promise<void> {
    if (this.#state === "committed" || this.#state === "ended") return;
    this.#state = "ended";
    this.#hasher.forget();
    this.#endWrite();
    await this.#writer.discard();
  }

  #hasEnded(): boolean {
    return this.#state === "ended";
  }

  #writeFrames(frames: Buffer[]): Promise<void> | undefined {
    for (const [index, frame] of frames.entries()) {
      const waiting = this.#writer.write(frame);
      if (waiting !== undefined) {
        return waiting.then(() => this.#writeFrames(frames.slice(index + 1)));
      }
    }
    return undefined;
  }

  // With a customer's or a named key, the ETag must not reveal the MD5 of the plain text.
  #chooseEtag({ md5 }: BodyDigests): string {
    const cipher = this.#cipher;
    if (cipher === undefined || cipher.type === "SSE-S3") return md5.toString("hex");
    const salt = cipher.type === "SSE-C" ? cipher.salt : cipher.wrapped;
    return createHash("sha256").update(md5).update(salt).digest("hex").slice(0, 32);
  }

  #chooseChecksum({ checksums }: BodyDigests): ObjectChecksum | undefined {
    const algorithm = this.#request.checksum;
    const value = algorithm === undefined ? undefined : checksums[algorithm];
    if (algorithm === undefined || value === undefined) return undefined;
    return { algorithm, value: value.toString("base64"), type: "FULL_OBJECT" };
  }
}
