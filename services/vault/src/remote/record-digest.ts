// Digests of a record as it is sent, or as it is read back.
import { createHash, type Hash } from "node:crypto";
import { crc32c } from "@node-rs/crc32";

/** Adds up pieces in their order. */
export class RecordDigest {
  readonly #hash: Hash = createHash("sha256");
  #crc: number | undefined;

  add(piece: Uint8Array): void {
    this.#hash.update(piece);
    this.#crc = crc32c(Buffer.from(piece.buffer, piece.byteOffset, piece.length), this.#crc);
  }

  /** Base64, as in headers of S3. */
  get crc32c(): string {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.#crc ?? 0);
    return bytes.toString("base64");
  }

  get sha256(): string {
    return this.#hash.copy().digest("hex");
  }
}
