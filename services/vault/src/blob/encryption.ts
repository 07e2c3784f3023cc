// Encryption at rest: AES-256-GCM over frames of 64 KiB, with one key per blob.
//
//   stored = frame │ frame │ … ; frame = ciphertext (64 KiB, the last one less) │ tag (16 bytes)
//
// A key is never used for two blobs, so the nonce is the frame's index with a mark on the last one: frames that are moved,
// removed or truncated fail authentication.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import type { EncryptionRequest, ObjectEncryption } from "../model/object.ts";
import { StoreError } from "../model/store-error.ts";
import type { BlobCipher, BlobId, WrappedCipher } from "../model/blob.ts";

/** A key-encryption key: 32 bytes, with an id of 16 hexadecimal digits. */
export interface Kek {
  readonly id: string;
  readonly key: Buffer;
}

/** Named keys, as requests use them. All methods throw `KMS.…` errors for keys that may not be used. */
export interface NamedKeys {
  /** Id of the key that an id, an alias or an ARN names. */
  resolve(reference: string): string;
  /** The current version of a key. */
  current(keyId: string): Kek;
  requireUsable(keyId: string): void;
  /** The policy of a key, as put; `undefined` if it has none. */
  findPolicy(keyId: string): object | undefined;
}

/** The change of keys, as the work that wraps again sees it. */
export interface KeyRotation {
  /** The version that replaces a former one; `undefined` if it is a current one, or unknown. */
  findSuccessor(kek: string): Kek | undefined;
  /** The current version of a named key in any state; `undefined` if it is unknown. */
  currentOf(keyId: string): Kek | undefined;
  /** Former versions that are still kept. */
  listFormer(): string[];
  /** Forgets former versions, unless they are held. */
  retire(keks: readonly string[]): void;
  /** Named keys whose time of deletion has come, with their versions. */
  listDue(): { keyId: string; keks: string[] }[];
  remove(keyId: string): void;
  /** Called when there is work. */
  onRotated: () => void;
}

/** Key-encryption keys: the active one of `SSE-S3`, all that still wrap something, and named keys. */
export interface KeyProvider {
  current(): Kek;
  /** Any key by its id. Throws `ServiceUnavailable` while its source cannot be reached. */
  find(id: string): Buffer | undefined;
  /** `SSE-KMS` is refused without it. */
  readonly named?: NamedKeys;
  readonly rotation?: KeyRotation;
  /** Keeps all keys until the returned function is called. */
  hold?(): () => void;
}

const FRAME_BYTES = 64 * 1024;
const TAG_BYTES = 16;
/** Stored size of a full frame. */
export const STORED_FRAME_BYTES = FRAME_BYTES + TAG_BYTES;
const KEY_BYTES = 32;
const IV_BYTES = 12;
const ALGORITHM = "aes-256-gcm";

/** The encrypted size of `size` bytes. */
export function measureCiphertext(size: number): number {
  return size + TAG_BYTES * countFrames(size);
}

/** Creates the key of a new blob, and the data that the index stores about it. */
export function createBlobKey(
  request: EncryptionRequest,
  keys: KeyProvider | undefined,
  blob: BlobId,
): { key: Buffer; cipher: BlobCipher } {
  if (request.type === "SSE-C") {
    requireKeyLength(request.key);
    const salt = randomBytes(KEY_BYTES);
    const cipher: BlobCipher = {
      type: "SSE-C",
      salt: salt.toString("base64"),
      keyMd5: digestKey(request.key),
    };
    return { key: deriveKey(request.key, salt), cipher };
  }
  const key = randomBytes(KEY_BYTES);
  if (request.type === "SSE-KMS") {
    const { keyId, context } = request;
    return { key, cipher: wrap(key, requireNamed(keys).current(keyId), blob, { keyId, context }) };
  }
  return { key, cipher: wrap(key, requireKeys(keys).current(), blob) };
}

function requireKeys(keys: KeyProvider | undefined): KeyProvider {
  if (keys !== undefined) return keys;
  throw new StoreError(
    "InvalidRequest",
    "Server-side encryption is not configured: the key is missing",
  );
}

/** Named keys; throws `KMS.NotFoundException` if the store has none. */
export function requireNamed(keys: Pick<KeyProvider, "named"> | undefined): NamedKeys {
  if (keys?.named !== undefined) return keys.named;
  throw new StoreError("KMS.NotFoundException", "The store has no named keys.");
}

function wrap(
  key: Buffer,
  kek: Kek,
  blob: BlobId,
  named?: { keyId: string; context: string | undefined },
): WrappedCipher {
  const wrapped = wrapKey(kek.key, key, blob, named?.context);
  if (named === undefined) return { type: "SSE-S3", kek: kek.id, wrapped };
  const { keyId, context } = named;
  const cipher = { type: "SSE-KMS", kek: kek.id, wrapped, key: keyId } as const;
  return context === undefined ? cipher : { ...cipher, context };
}

/** The key of a stored blob, for a request. Throws for named keys that may not be used. */
export function openBlobKey(
  cipher: BlobCipher,
  keys: Pick<KeyProvider, "find" | "named"> | undefined,
  blob: BlobId,
  customerKey: Buffer | undefined,
): Buffer {
  if (cipher.type === "SSE-C") {
    requireCustomerKey(cipher, customerKey);
    return deriveKey(customerKey, Buffer.from(cipher.salt, "base64"));
  }
  if (cipher.key !== undefined) requireUsableKey(keys, cipher.key);
  return unwrap(cipher, keys, blob);
}

/**
 * Throws for a named key of a stored body that may not be used. No key is deleted while a body names it: one that is unknown is
 * missing here, as in a store with an older key file, and comes back with that.
 */
export function requireUsableKey(
  keys: Pick<KeyProvider, "named"> | undefined,
  keyId: string,
): void {
  try {
    requireNamed(keys).requireUsable(keyId);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "KMS.NotFoundException") throw error;
    throw new StoreError(
      "ServiceUnavailable",
      `The key ${keyId} that encrypts this object is missing`,
      {},
      { cause: error },
    );
  }
}

/** True if the version of the key that a cipher names is known. Throws while its source cannot be reached. */
export function hasKey(cipher: BlobCipher, keys: Pick<KeyProvider, "find"> | undefined): boolean {
  return cipher.type === "SSE-C" || keys?.find(cipher.kek) !== undefined;
}

function unwrap(
  { kek: id, wrapped, context }: WrappedCipher,
  keys: Pick<KeyProvider, "find"> | undefined,
  blob: BlobId,
): Buffer {
  const kek = keys?.find(id);
  if (kek !== undefined) return unwrapKey(kek, wrapped, blob, context);
  throw new StoreError("ServiceUnavailable", `The key ${id} that encrypts this object is missing`);
}

/**
 * The cipher of a copy of stored bytes under another id: the same key, wrapped by the current key of `to`, or by its version
 * of the same named key. The bytes stay encrypted, so that a disabled key does not matter.
 */
export function rewrapCipher(
  cipher: BlobCipher,
  { from, to }: { from: Pick<KeyProvider, "find"> | undefined; to: KeyProvider | undefined },
  blob: BlobId,
  copy: BlobId,
): BlobCipher {
  if (cipher.type === "SSE-C") return cipher;
  const { key: keyId, context } = cipher;
  const key = unwrap(cipher, from, blob);
  if (keyId === undefined) return wrap(key, requireKeys(to).current(), copy);
  const next = to?.rotation?.currentOf(keyId);
  if (next !== undefined) return wrap(key, next, copy, { keyId, context });
  throw new StoreError("KMS.NotFoundException", `The key ${keyId} is not one of this store.`);
}

/** The cipher with the same key of its blob, wrapped by a newer version of the key-encryption key. */
export function renewCipher(
  cipher: WrappedCipher,
  keys: Pick<KeyProvider, "find">,
  next: Kek,
  blob: BlobId,
): WrappedCipher {
  const { key: keyId, context } = cipher;
  const named = keyId === undefined ? undefined : { keyId, context };
  return wrap(unwrap(cipher, keys, blob), next, blob, named);
}

/** Checks that the customer's key is present and correct, against the stored encryption of an object or an upload. */
export function requireCustomerKey(
  encryption: ObjectEncryption | BlobCipher | undefined,
  customerKey: Buffer | undefined,
): asserts customerKey is Buffer {
  if (encryption?.type !== "SSE-C") {
    if (customerKey === undefined) return;
    throw new StoreError(
      "InvalidRequest",
      "The encryption parameters are not applicable to this object.",
    );
  }
  if (customerKey === undefined) {
    throw new StoreError(
      "InvalidRequest",
      "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.",
    );
  }
  requireKeyLength(customerKey);
  const expected = Buffer.from(encryption.keyMd5);
  const given = Buffer.from(digestKey(customerKey));
  if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
    throw new StoreError("AccessDenied", "The calculated MD5 hash of the key did not match.");
  }
}

/** The encryption of an object as answers show it. */
export function describeEncryption(
  request: EncryptionRequest | undefined,
): ObjectEncryption | undefined {
  if (request?.type !== "SSE-C") return request;
  return { type: "SSE-C", keyMd5: digestKey(request.key) };
}

/** MD5 of a customer's key in base64, as in requests and answers. */
function digestKey(key: Buffer): string {
  return createHash("md5").update(key).digest("base64");
}

/** Encrypts a body to frames. */
export class BodyEncryptor {
  readonly #key: Buffer;
  readonly #lastFrame: number;
  readonly #pending = Buffer.allocUnsafe(FRAME_BYTES);
  #pendingBytes = 0;
  #index = 0;

  constructor(key: Buffer, size: number) {
    this.#key = key;
    this.#lastFrame = countFrames(size) - 1;
  }

  /** Encrypts a part of the body. Returns the completed frames. */
  update(chunk: Uint8Array): Buffer[] {
    const out: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      const count = Math.min(rest.length, FRAME_BYTES - this.#pendingBytes);
      this.#pending.set(rest.subarray(0, count), this.#pendingBytes);
      this.#pendingBytes += count;
      rest = rest.subarray(count);
      if (this.#pendingBytes === FRAME_BYTES) out.push(...this.#seal());
    }
    return out;
  }

  /** The last frame, unless it was full. */
  final(): Buffer[] {
    return this.#index <= this.#lastFrame ? this.#seal() : [];
  }

  #seal(): Buffer[] {
    const cipher = createCipheriv(ALGORITHM, this.#key, buildNonce(this.#index, this.#lastFrame));
    const body = cipher.update(this.#pending.subarray(0, this.#pendingBytes));
    cipher.final();
    this.#index += 1;
    this.#pendingBytes = 0;
    return [body, cipher.getAuthTag()];
  }
}

/** The stored range that contains the bytes `start` up to `end` of a body of `size` bytes. */
export function locateCiphertext(
  start: number,
  end: number,
  size: number,
): { start: number; end: number } {
  const first = Math.floor(start / FRAME_BYTES);
  const last = Math.max(first, Math.ceil(end / FRAME_BYTES) - 1);
  return {
    start: first * STORED_FRAME_BYTES,
    end: Math.min((last + 1) * STORED_FRAME_BYTES, measureCiphertext(size)),
  };
}

/** Decrypts the range of `locateCiphertext` frame by frame, and cuts out `start` up to `end`. */
export class BodyDecryptor {
  readonly #key: Buffer;
  readonly #range: { start: number; end: number; size: number };
  readonly #lastFrame: number;
  #index: number;
  #chunk: Buffer | undefined;
  #at = 0;
  // The beginning of a frame whose rest has not arrived.
  #tail: Buffer | undefined;
  #tailBytes = 0;

  constructor(key: Buffer, range: { start: number; end: number; size: number }) {
    this.#key = key;
    this.#range = range;
    this.#lastFrame = countFrames(range.size) - 1;
    this.#index = Math.floor(range.start / FRAME_BYTES);
  }

  /** Offset of the next frame in the stored bytes. */
  get position(): number {
    return this.#index * STORED_FRAME_BYTES;
  }

  /** Bytes of the next frame that were copied from the chunk. */
  get tailBytes(): number {
    return this.#tailBytes;
  }

  /** True if the next frame is complete. */
  get hasFrame(): boolean {
    return this.#chunk !== undefined;
  }

  /** Adds the stored bytes that follow; all complete frames must have been opened before. */
  feed(chunk: Buffer): void {
    this.#chunk = chunk;
    this.#at = 0;
    this.#keepTail();
  }

  /**
   * Decrypts the next frame. After the last complete one, the memory of the chunk is free. Throws if the frame is
   * incomplete.
   */
  open(): Buffer {
    if (this.#chunk === undefined) {
      throw new StoreError("InternalError", "Stored data is shorter than it should be");
    }
    const { start, end } = this.#range;
    const offset = this.#index * FRAME_BYTES;
    const plain = decryptFrame(
      this.#cutFrame(this.#chunk),
      this.#key,
      this.#index,
      this.#lastFrame,
    );
    this.#index += 1;
    this.#keepTail();
    return plain.subarray(Math.max(0, start - offset), Math.min(plain.length, end - offset));
  }

  /** Drops the beginning of the next frame, which is then read again from `position`. */
  dropTail(): void {
    this.#tail = undefined;
    this.#tailBytes = 0;
  }

  get #frameBytes(): number {
    const rest = measureCiphertext(this.#range.size) - this.position;
    return Math.min(STORED_FRAME_BYTES, rest);
  }

  #cutFrame(chunk: Buffer): Buffer {
    const missing = this.#frameBytes - this.#tailBytes;
    const begin = this.#at;
    this.#at += missing;
    if (this.#tailBytes === 0) return chunk.subarray(begin, this.#at);
    chunk.copy(this.#tail!, this.#tailBytes, begin, this.#at);
    const frame = this.#tail!.subarray(0, this.#tailBytes + missing);
    this.#tailBytes = 0;
    return frame;
  }

  #keepTail(): void {
    const rest = this.#chunk!.length - this.#at;
    if (rest > 0 && this.#tailBytes + rest >= this.#frameBytes) return;
    if (rest > 0) {
      this.#tail ??= Buffer.allocUnsafeSlow(STORED_FRAME_BYTES);
      this.#tailBytes += this.#chunk!.copy(this.#tail, this.#tailBytes, this.#at);
    }
    this.#chunk = undefined;
  }
}

function decryptFrame(frame: Buffer, key: Buffer, index: number, lastFrame: number): Buffer {
  try {
    const body = frame.subarray(0, frame.length - TAG_BYTES);
    const decipher = createDecipheriv(ALGORITHM, key, buildNonce(index, lastFrame));
    decipher.setAuthTag(frame.subarray(frame.length - TAG_BYTES));
    const plain = decipher.update(body);
    decipher.final();
    return plain;
  } catch (error) {
    throw new StoreError(
      "InternalError",
      "Stored data does not authenticate",
      {},
      { cause: error },
    );
  }
}

function countFrames(size: number): number {
  return Math.max(1, Math.ceil(size / FRAME_BYTES));
}

function buildNonce(index: number, lastFrame: number): Buffer {
  const nonce = Buffer.alloc(IV_BYTES);
  nonce.writeUInt8(index === lastFrame ? 1 : 0, 0);
  nonce.writeBigUInt64BE(BigInt(index), 4);
  return nonce;
}

function deriveKey(customerKey: Buffer, salt: Buffer): Buffer {
  return Buffer.from(hkdfSync("sha256", customerKey, salt, "vault SSE-C body", KEY_BYTES));
}

function requireKeyLength(key: Buffer): void {
  if (key.length === KEY_BYTES) return;
  throw new StoreError("InvalidRequest", "The key must be 256 bits long");
}

// The id of the blob is authenticated, so that a wrapped key is useless for another blob, and so is the encryption context.
function nameBlob(blob: BlobId, context: string | undefined): Buffer {
  return Buffer.from(context === undefined ? `blob ${blob}` : `blob ${blob}\n${context}`);
}

function wrapKey(kek: Buffer, key: Buffer, blob: BlobId, context: string | undefined): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, kek, iv).setAAD(nameBlob(blob, context));
  const body = Buffer.concat([cipher.update(key), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64");
}

function unwrapKey(
  kek: Buffer,
  wrapped: string,
  blob: BlobId,
  context: string | undefined,
): Buffer {
  const bytes = Buffer.from(wrapped, "base64");
  try {
    const decipher = createDecipheriv(ALGORITHM, kek, bytes.subarray(0, IV_BYTES));
    decipher.setAAD(nameBlob(blob, context));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new StoreError(
      "InternalError",
      "The object's key does not authenticate",
      {},
      { cause: error },
    );
  }
}
