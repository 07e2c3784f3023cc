// Bytes whose number is not known before their end: in memory at first, then in a file in the folder of staging, encrypted
// with a key that only this object has. The next start removes files that are left.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { BlobStore } from "../blob/blob-store.ts";
import { closeFile, openFile, readAll, removeFile, writeAll } from "../disk/files.ts";
import { translateDiskError } from "../blob/staged-writer.ts";

const MEMORY_BYTES_MAX = 1024 * 1024;
const READ_BYTES = 1024 * 1024;
const CIPHER = "aes-256-ctr";

/** A spool. `remove` is required, also after a failure. */
export class Spool {
  readonly #blobs: BlobStore;
  readonly #key = randomBytes(32);
  readonly #iv = randomBytes(16);
  readonly #cipher = createCipheriv(CIPHER, this.#key, this.#iv);
  #path: string | undefined;
  #fd: number | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #fileBytes = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  get bytes(): number {
    return this.#fileBytes + this.#heldBytes;
  }

  /** Appends bytes, which must not change afterwards. Throws `InsufficientStorage` if the disk is full. */
  async append(chunk: Uint8Array): Promise<void> {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= MEMORY_BYTES_MAX) return;
    this.#blobs.requireSpace(this.#heldBytes);
    try {
      this.#fd ??= await this.#open();
      const encrypted = this.#held.map((held) => this.#cipher.update(held));
      await writeAll(this.#fd, encrypted, this.#fileBytes);
    } catch (error) {
      throw translateDiskError(error);
    }
    this.#fileBytes += this.#heldBytes;
    this.#held = [];
    this.#heldBytes = 0;
  }

  /** All bytes in order. */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const decipher = createDecipheriv(CIPHER, this.#key, this.#iv);
    for (let at = 0; at < this.#fileBytes; at += READ_BYTES) {
      const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, this.#fileBytes - at));
      const count = await readAll(this.#fd!, piece, at);
      if (count < piece.length) throw new Error("a spooled body has lost bytes");
      yield decipher.update(piece);
    }
    yield* this.#held;
  }

  /** Removes the file and the bytes in memory. */
  async remove(): Promise<void> {
    this.#held = [];
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await closeFile(fd).catch(() => undefined);
    if (this.#path !== undefined) await removeFile(this.#path).catch(() => undefined);
  }

  async #open(): Promise<number> {
    this.#path = this.#blobs.nameSpool();
    return openFile(this.#path, "w+");
  }
}
