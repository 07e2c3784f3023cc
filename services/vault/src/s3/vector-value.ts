// Vectors in requests: JSON arrays of numbers, or little-endian floats.
import { S3Error } from "../model/s3-error.ts";
import { DIMENSION_MAX, encodeVector, FLOAT_BYTES } from "../model/vector.ts";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads the value of a header: a JSON array, or base64 of floats. Throws InvalidArgument. */
export function readVectorField(text: string): Uint8Array {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) return readVectorText(trimmed);
  if (!BASE64.test(trimmed) || trimmed.length % 4 !== 0) {
    throw invalid("is neither a JSON array nor base64");
  }
  return requireFloats(Buffer.from(trimmed, "base64"));
}

/** Reads a JSON array. Throws InvalidArgument. */
export function readVectorText(text: string): Uint8Array {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("is not a JSON array");
  }
  return toVector(value);
}

/** Converts a value of a JSON document. Throws InvalidArgument unless it is an array of finite numbers. */
export function toVector(value: unknown): Uint8Array {
  if (!Array.isArray(value)) throw invalid("is not an array");
  if (value.length === 0 || value.length > DIMENSION_MAX) {
    throw invalid(`has ${value.length} numbers; 1 to ${DIMENSION_MAX} are allowed`);
  }
  for (const number of value as unknown[]) {
    if (typeof number !== "number" || !Number.isFinite(Math.fround(number))) {
      throw invalid("has a value that is no number in single precision");
    }
  }
  return encodeVector(value as number[]);
}

/** Checks bytes. Throws InvalidArgument unless they are floats. */
export function requireFloats(bytes: Buffer): Uint8Array {
  const numbers = bytes.length / FLOAT_BYTES;
  if (!Number.isInteger(numbers) || numbers === 0 || numbers > DIMENSION_MAX) {
    throw invalid(`has ${bytes.length} bytes; floats have 4 bytes each, at most ${DIMENSION_MAX}`);
  }
  return bytes;
}

function invalid(reason: string): S3Error {
  return new S3Error("InvalidArgument", `The vector ${reason}.`);
}
