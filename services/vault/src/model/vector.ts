// Vectors of objects: their index, their values, and the distances between them.
import { StoreError } from "./store-error.ts";

/** Largest number of dimensions. */
export const DIMENSION_MAX = 4_096;
/** Bytes of a number of a vector: a float in IEEE 754 single precision, little-endian. */
export const FLOAT_BYTES = 4;

/** Measures of distance: 1 − cosine, the Euclidean distance, and the negative scalar product. */
export const VECTOR_METRICS = ["cosine", "euclidean", "dot"] as const;

/** A measure of distance. */
export type VectorMetric = (typeof VECTOR_METRICS)[number];

/** The vector index of a bucket. */
export interface VectorIndex {
  readonly dimension: number;
  readonly metric: VectorMetric;
  /** The source of vectors that are computed for objects without one of their own. */
  readonly embed?: EmbedSource;
}

/** The text that a vector is computed from. */
export interface EmbedSource {
  /** `body`, `key` or `metadata.NAME`. */
  readonly from: string;
  /** Content types, also as `text/*`. Default: all. */
  readonly types?: readonly string[];
  /** The beginning of a body that is read. Default: 64 KiB. */
  readonly max_bytes?: number;
}

/** `pending` until a computed vector is stored, `failed` if that cannot succeed. */
export type VectorStatus = "stored" | "pending" | "failed";

/** Computes vectors from texts. */
export interface Embedder {
  /** Rejects with a {@link RefusedTextError} for a text that it never accepts; other errors may pass. */
  embed(text: string, dimension: number): Promise<Uint8Array>;
}

/** A text has no vector, also at another attempt. */
export class RefusedTextError extends Error {
  override readonly name = "RefusedTextError";
}

/** The value of a vector, and its version. */
export interface StoredVector {
  /** Little-endian floats. */
  readonly data: Uint8Array;
  readonly versionId: string;
}

/** Throws InvalidBucketState without an index, InvalidArgument for a vector that does not fit it. */
export function requireFittingVector(index: VectorIndex | undefined, data: Uint8Array): void {
  if (index === undefined) {
    throw new StoreError("InvalidBucketState", "The bucket has no vector index.");
  }
  const numbers = data.length / FLOAT_BYTES;
  if (numbers !== index.dimension) {
    throw new StoreError(
      "InvalidArgument",
      `The vector has ${numbers} numbers, the index of the bucket has ${index.dimension} dimensions.`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let isZero = true;
  for (let at = 0; at < data.length; at += FLOAT_BYTES) {
    const number = view.getFloat32(at, true);
    if (!Number.isFinite(number)) {
      throw new StoreError("InvalidArgument", "A number of the vector is not finite.");
    }
    if (number !== 0) isZero = false;
  }
  if (isZero && index.metric === "cosine") {
    throw new StoreError("InvalidArgument", "A vector of zeros has no direction.");
  }
}

/** As {@link requireFittingVector}, for a vector that may be missing. */
export function requireFitting(index: VectorIndex | undefined, data: Uint8Array | undefined): void {
  if (data !== undefined) requireFittingVector(index, data);
}

/** Encodes numbers as little-endian floats. */
export function encodeVector(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * FLOAT_BYTES);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * FLOAT_BYTES);
  return bytes;
}

/** The floats of a vector, for reading: they may share its memory. */
export function decodeVector(data: Uint8Array): Float32Array {
  if (isLittleEndian) {
    const { buffer, byteOffset, length } =
      data.byteOffset % FLOAT_BYTES === 0 ? data : new Uint8Array(data);
    return new Float32Array(buffer, byteOffset, length / FLOAT_BYTES);
  }
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  return Float32Array.from({ length: data.length / FLOAT_BYTES }, (_, index) =>
    view.getFloat32(index * FLOAT_BYTES, true),
  );
}

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
