// Additional checksums: the names of their headers, and the checksum that a request declares.
import type { ChecksumAlgorithm } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { RequestFields } from "./fields.ts";

/** The algorithms with their headers and the length of a value in base64. */
export const CHECKSUM_ALGORITHMS = {
  CRC32: { field: "x-amz-checksum-crc32", element: "ChecksumCRC32", length: 8 },
  CRC32C: { field: "x-amz-checksum-crc32c", element: "ChecksumCRC32C", length: 8 },
  CRC64NVME: { field: "x-amz-checksum-crc64nvme", element: "ChecksumCRC64NVME", length: 12 },
  SHA1: { field: "x-amz-checksum-sha1", element: "ChecksumSHA1", length: 28 },
  SHA256: { field: "x-amz-checksum-sha256", element: "ChecksumSHA256", length: 44 },
} as const satisfies Record<ChecksumAlgorithm, { field: string; element: string; length: number }>;

const ENTRIES = Object.entries(CHECKSUM_ALGORITHMS) as [
  ChecksumAlgorithm,
  (typeof CHECKSUM_ALGORITHMS)[ChecksumAlgorithm],
][];

/** The checksum that a request declares: a value, or the name of a trailer. */
export interface ChecksumClaim {
  algorithm: ChecksumAlgorithm;
  /** Base64; `undefined` if it is in the trailer. */
  value: string | undefined;
}

/** The algorithm of a header value. Throws InvalidRequest for an unknown one. */
export function readChecksumAlgorithm(text: string): ChecksumAlgorithm {
  const name = text.toUpperCase();
  if (!Object.hasOwn(CHECKSUM_ALGORITHMS, name)) {
    throw new S3Error(
      "InvalidRequest",
      "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]",
    );
  }
  return name as ChecksumAlgorithm;
}

/** The value of `x-amz-checksum-…`; `undefined` without one. Throws InvalidRequest for several or a malformed one. */
export function readChecksumClaim(
  fields: RequestFields,
  trailerNames: readonly string[],
): ChecksumClaim | undefined {
  const found: ChecksumClaim[] = [];
  for (const [algorithm, { field }] of ENTRIES) {
    const value = fields.get(field);
    if (value !== undefined) found.push({ algorithm, value: checkValue(algorithm, value) });
    else if (trailerNames.includes(field)) found.push({ algorithm, value: undefined });
  }
  if (found.length > 1) throw severalChecksums();
  const asked = fields.get("x-amz-sdk-checksum-algorithm");
  const claim = found[0];
  if (asked === undefined) return claim;
  const algorithm = readChecksumAlgorithm(asked);
  if (claim === undefined) {
    throw new S3Error(
      "InvalidRequest",
      "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.",
    );
  }
  if (algorithm !== claim.algorithm) {
    throw new S3Error(
      "InvalidRequest",
      "Value for x-amz-sdk-checksum-algorithm header is invalid.",
    );
  }
  return claim;
}

/**
 * The expected checksum of a completed upload, with or without the number of parts as a suffix; `undefined` without one.
 * Throws as `readChecksumClaim`.
 */
export function readCompositeClaim(fields: RequestFields): string | undefined {
  const found: string[] = [];
  for (const [algorithm, { field }] of ENTRIES) {
    const value = fields.get(field);
    if (value === undefined) continue;
    checkValue(algorithm, value.replace(/-\d{1,5}$/, ""));
    found.push(value);
  }
  if (found.length > 1) throw severalChecksums();
  return found[0];
}

/** Throws InvalidRequest unless a value is base64 of the algorithm's length. */
function checkValue(algorithm: ChecksumAlgorithm, value: string): string {
  const { length, field } = CHECKSUM_ALGORITHMS[algorithm];
  if (value.length !== length || Buffer.from(value, "base64").toString("base64") !== value) {
    throw new S3Error("InvalidRequest", `Value for ${field} header is invalid.`);
  }
  return value;
}

function severalChecksums(): S3Error {
  return new S3Error(
    "InvalidRequest",
    "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
  );
}
