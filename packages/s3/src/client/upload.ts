// Uploads of objects of any size, in parts.
import {
  hashBody,
  type S3Checksum,
  type S3Client,
  type S3PutOptions,
  type S3RequestOptions,
} from "./client.ts";
import { S3ClientError } from "./error.ts";

const PART_BYTES = 8 * 1024 * 1024;
/** Parts that S3 accepts for one object. */
const PARTS_MAX = 10_000;

/** Bytes to upload. */
export interface UploadSource {
  /** Size of the object. */
  bytes: number;
  /** Reads exactly `length` bytes; called for one part after another. */
  read: (position: number, length: number) => Promise<Uint8Array>;
  /** Checksum of the whole object, requested after the last read. */
  checksum?: { algorithm: S3Checksum["algorithm"]; digest: () => string };
}

/** Options of an upload. */
export interface UploadOptions extends S3RequestOptions {
  /** As that of a put. */
  isNew?: boolean | undefined;
}

/**
 * Uploads an object: in one request if it fits into a part of 8 MiB, otherwise in parts, two of which are in memory.
 * If it fails, the parts are discarded as far as the store answers; what `read` rejects with is passed on.
 */
export async function uploadObject(
  client: S3Client,
  key: string,
  source: UploadSource,
  options: UploadOptions = {},
): Promise<void> {
  const { bytes, read, checksum } = source;
  if (bytes <= PART_BYTES) {
    const body = await read(0, bytes);
    await client.put(key, body, { ...options, ...digest(source) });
    return;
  }
  const partBytes = Math.max(PART_BYTES, Math.ceil(bytes / PARTS_MAX));
  const algorithm = checksum?.algorithm;
  const uploadId = await client.createUpload(key, { ...options, algorithm });
  try {
    const etags = await uploadParts(client, key, uploadId, source, partBytes, options);
    const last = { ...options, ...digest(source) };
    await completeOrConfirm(client, key, uploadId, etags, bytes, last);
  } catch (error) {
    await client.abortUpload(key, uploadId, { attemptsMax: 2 }).catch(() => undefined);
    throw error;
  }
}

/** Discards the unfinished uploads of a key. */
export async function discardUploads(
  client: S3Client,
  key: string,
  options: S3RequestOptions = {},
): Promise<void> {
  for (const id of await client.listUploads(key, options)) {
    await client.abortUpload(key, id, options);
  }
}

function digest({ checksum }: UploadSource): Pick<S3PutOptions, "checksum"> {
  if (checksum === undefined) return {};
  return { checksum: { algorithm: checksum.algorithm, value: checksum.digest() } };
}

// The next part is read and hashed while the previous one is sent.
async function uploadParts(
  client: S3Client,
  key: string,
  uploadId: string,
  { bytes, read }: UploadSource,
  partBytes: number,
  options: S3RequestOptions,
): Promise<string[]> {
  const etags: string[] = [];
  let sending: Promise<string> | undefined;
  try {
    for (let position = 0; position < bytes; position += partBytes) {
      const part = await read(position, Math.min(partBytes, bytes - position));
      const payloadHash = await hashBody(part);
      if (sending !== undefined) etags.push(await sending);
      const number = position / partBytes + 1;
      sending = client.uploadPart(key, uploadId, number, part, { ...options, payloadHash });
      // It is awaited below; until then its failure must not count as unhandled.
      sending.catch(() => undefined);
    }
    if (sending !== undefined) etags.push(await sending);
    return etags;
  } finally {
    await sending?.catch(() => undefined);
  }
}

// The answer to a completion may be lost, and the repeated request then finds no upload.
async function completeOrConfirm(
  client: S3Client,
  key: string,
  uploadId: string,
  etags: readonly string[],
  bytes: number,
  options: S3PutOptions,
): Promise<void> {
  try {
    await client.completeUpload(key, uploadId, etags, options);
  } catch (error) {
    if (!(error instanceof S3ClientError) || error.code !== "no_such_upload") throw error;
    const head = await client.head(key, options);
    if (head?.bytes !== bytes) throw error;
  }
}
