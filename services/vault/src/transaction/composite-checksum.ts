// Checksums of objects of parts, computed from those of the parts.
import { computeChecksum } from "../hash/checksum.ts";
import { CRC64_POLYNOMIAL } from "../hash/crc64.ts";
import type { ChecksumAlgorithm, ObjectChecksum } from "../model/object.ts";

/**
 * The checksum of an object of parts: of all bytes (CRCs only, combined by arithmetic), or of the parts' checksums, with
 * the number of parts as a suffix.
 */
export function combineChecksums(
  { algorithm, type }: { algorithm: ChecksumAlgorithm; type: "FULL_OBJECT" | "COMPOSITE" },
  parts: readonly { value: Buffer; size: number }[],
): ObjectChecksum {
  if (type === "COMPOSITE") {
    const digest = computeChecksum(algorithm, Buffer.concat(parts.map(({ value }) => value)));
    return { algorithm, type, value: `${digest.toString("base64")}-${parts.length}` };
  }
  const width = algorithm === "CRC64NVME" ? 64 : 32;
  const polynomial = POLYNOMIALS[algorithm];
  if (polynomial === undefined) throw new TypeError(`${algorithm} of parts cannot be combined`);
  let crc = 0n;
  for (const { value, size } of parts) {
    const next = width === 64 ? value.readBigUInt64BE() : BigInt(value.readUInt32BE());
    crc = multiply(crc, powerOfX(BigInt(size) * 8n, polynomial, width), polynomial, width) ^ next;
  }
  const result = Buffer.alloc(width / 8);
  if (width === 64) result.writeBigUInt64BE(crc);
  else result.writeUInt32BE(Number(crc));
  return { algorithm, type, value: result.toString("base64") };
}

const POLYNOMIALS: Partial<Record<ChecksumAlgorithm, bigint>> = {
  CRC32: 0xedb88320n,
  CRC32C: 0x82f63b78n,
  CRC64NVME: CRC64_POLYNOMIAL,
};

// Reflected polynomials modulo P: the highest bit is x^0 (as in zlib's crc32_combine).
function multiply(a: bigint, b: bigint, polynomial: bigint, width: number): bigint {
  const top = 1n << BigInt(width - 1);
  let product = 0n;
  let left = a;
  let right = b;
  for (let bit = 0; bit < width; bit += 1) {
    if ((left & top) !== 0n) product ^= right;
    left = (left << 1n) & ((top << 1n) - 1n);
    right = (right & 1n) === 1n ? (right >> 1n) ^ polynomial : right >> 1n;
  }
  return product;
}

function powerOfX(exponent: bigint, polynomial: bigint, width: number): bigint {
  let result = 1n << BigInt(width - 1);
  let square = 1n << BigInt(width - 2);
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = multiply(result, square, polynomial, width);
    square = multiply(square, square, polynomial, width);
  }
  return result;
}
