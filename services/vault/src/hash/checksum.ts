// Checksums by native code, also of bytes in memory.
import { createHash, type Hash } from "node:crypto";
import { crc32, crc32c } from "@node-rs/crc32";
import type { ChecksumAlgorithm } from "../model/object.ts";
import { advanceCrc64, CRC64_START, formatCrc64 } from "./crc64.ts";

/** A checksum in progress. */
export interface ChecksumState {
  update(chunk: Uint8Array): void;
  /** The raw digest, big-endian; ends the checksum. */
  digest(): Buffer;
}

/** The algorithms that the kernel does not compute. */
export type NativeAlgorithm = Exclude<ChecksumAlgorithm, "CRC64NVME">;

/** Creates a checksum. */
export function startChecksum(algorithm: NativeAlgorithm): ChecksumState {
  switch (algorithm) {
    case "CRC32":
      return new CrcState(crc32);
    case "CRC32C":
      return new CrcState(crc32c);
    case "SHA1":
    case "SHA256":
      return new HashState(createHash(algorithm.toLowerCase()));
    default:
      return algorithm satisfies never;
  }
}

/** The checksum of bytes in memory: raw, big-endian. */
export function computeChecksum(algorithm: ChecksumAlgorithm, bytes: Uint8Array): Buffer {
  if (algorithm === "CRC64NVME") return formatCrc64(advanceCrc64(CRC64_START, bytes));
  const state = startChecksum(algorithm);
  state.update(bytes);
  return state.digest();
}

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

class CrcState implements ChecksumState {
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
