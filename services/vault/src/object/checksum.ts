// Checksums of the object API: computed over bodies, combined over parts.
import { createHash, type Hash } from "node:crypto";
import { crc32, crc32c } from "@node-rs/crc32";
import { createCRC64, type IHasher } from "hash-wasm";
import type { ChecksumAlgorithm, ObjectChecksum } from "./types.ts";

/** CRC-64/NVME, reflected (NVM Express NVM Command Set Specification 1.0, section 5.2.1.3.4). */
const CRC64_NVME = 0x9a6c9329ac4bc9b5n;

/** A checksum under way. */
export interface ChecksumState {
  update(chunk: Uint8Array): void;
  /** The raw digest, big-endian; ends it. */
  digest(): Buffer;
}

/**
 * Makes checksum states. CRC64NVME runs in WebAssembly, which takes a moment to compile: it is made ready once, and its
 * instances are used again.
 */
export class ChecksumFactory {
  readonly #spare: IHasher[];

  private constructor(first: IHasher) {
    this.#spare = [first];
  }

  /** Compiles what must be compiled. */
  static async create(): Promise<ChecksumFactory> {
    const factory = new ChecksumFactory(await createCRC64(CRC64_NVME.toString(16)));
    for (let count = 1; count < CRC64_STATES_READY; count += 1) {
      factory.#spare.push(await createCRC64(CRC64_NVME.toString(16)));
    }
    return factory;
  }

  /** A fresh state. */
  start(algorithm: ChecksumAlgorithm): ChecksumState {
    switch (algorithm) {
      case "CRC32":
        return new Crc32State(crc32);
      case "CRC32C":
        return new Crc32State(crc32c);
      case "CRC64NVME":
        return this.#startCrc64();
      case "SHA1":
        return new HashState(createHash("sha1"));
      case "SHA256":
        return new HashState(createHash("sha256"));
      default:
        return algorithm satisfies never;
    }
  }

  // An instance is made asynchronously; where all are taken, the same arithmetic runs in a table of our own.
  #startCrc64(): ChecksumState {
    const hasher = this.#spare.pop();
    if (hasher === undefined) return new Crc64TableState();
    hasher.init();
    return {
      update: (chunk) => void hasher.update(chunk),
      digest: () => {
        const digest = Buffer.from(hasher.digest("hex"), "hex");
        this.#spare.push(hasher);
        return digest;
      },
    };
  }
}

const CRC64_STATES_READY = 16;

/**
 * The checksum of an object of parts: of all bytes (CRCs only, combined by arithmetic), or of the parts' checksums, with
 * the number of parts behind it.
 */
export function combineChecksums(
  { algorithm, type }: { algorithm: ChecksumAlgorithm; type: "FULL_OBJECT" | "COMPOSITE" },
  parts: readonly { value: Buffer; size: number }[],
): ObjectChecksum {
  if (type === "COMPOSITE") {
    const digest = hashAtOnce(algorithm, Buffer.concat(parts.map(({ value }) => value)));
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
  CRC64NVME: CRC64_NVME,
};

class HashState implements ChecksumState {
  readonly #hash: Hash;

  constructor(hash: Hash) {
    this.#hash = hash;
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  digest(): Buffer {
    return this.#hash.digest();
  }
}

class Crc32State implements ChecksumState {
  readonly #compute: (input: Uint8Array, initial?: number) => number;
  #crc = 0;

  constructor(compute: (input: Uint8Array, initial?: number) => number) {
    this.#compute = compute;
  }

  update(chunk: Uint8Array): void {
    this.#crc = this.#compute(chunk, this.#crc);
  }

  digest(): Buffer {
    const digest = Buffer.alloc(4);
    digest.writeUInt32BE(this.#crc);
    return digest;
  }
}

class Crc64TableState implements ChecksumState {
  readonly #table = CRC64_TABLE;
  #crc = (1n << 64n) - 1n;

  update(chunk: Uint8Array): void {
    for (const byte of chunk) {
      this.#crc = (this.#crc >> 8n) ^ this.#table[Number(this.#crc & 0xffn) ^ byte]!;
    }
  }

  digest(): Buffer {
    const digest = Buffer.alloc(8);
    digest.writeBigUInt64BE(this.#crc ^ ((1n << 64n) - 1n));
    return digest;
  }
}

const CRC64_TABLE: readonly bigint[] = Array.from({ length: 256 }, (_, index) => {
  let value = BigInt(index);
  for (let bit = 0; bit < 8; bit += 1) {
    value = (value & 1n) === 1n ? (value >> 1n) ^ CRC64_NVME : value >> 1n;
  }
  return value;
});

function hashAtOnce(algorithm: ChecksumAlgorithm, bytes: Buffer): Buffer {
  switch (algorithm) {
    case "SHA1":
    case "SHA256":
      return createHash(algorithm.toLowerCase()).update(bytes).digest();
    case "CRC32":
    case "CRC32C": {
      const state = new Crc32State(algorithm === "CRC32" ? crc32 : crc32c);
      state.update(bytes);
      return state.digest();
    }
    case "CRC64NVME": {
      const state = new Crc64TableState();
      state.update(bytes);
      return state.digest();
    }
    default:
      return algorithm satisfies never;
  }
}

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
