// A file for the received bytes of a body whose memory is needed by others. It is read back and removed before the body is
// stored.
import { closeFile, openFile, readAll, removeFile, writeAll } from "../disk/files.ts";

const READ_BYTES = 256 * 1024;

/** The file is opened for each use and closed again: there may be one per connection, and descriptors are scarce. */
export class SpillFile {
  readonly #findPath: () => string;
  #bytes = 0;

  constructor(findPath: () => string) {
    this.#findPath = findPath;
  }

  /** Size of the file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends bytes. The buffers must not change until this resolves. */
  async append(buffers: readonly Uint8Array[]): Promise<void> {
    const fd = await openFile(this.#findPath(), this.#bytes === 0 ? "w" : "r+");
    try {
      await writeAll(fd, buffers, this.#bytes);
    } finally {
      await closeFile(fd);
    }
    for (const { length } of buffers) this.#bytes += length;
  }

  /** Passes the whole content to `take` in chunks. A chunk is valid until `take` returns. */
  async read(take: (piece: Buffer, at: number) => void): Promise<void> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, this.#bytes));
    const fd = await openFile(this.#findPath(), "r");
    try {
      for (let at = 0; at < this.#bytes; at += buffer.length) {
        const piece = buffer.subarray(0, Math.min(buffer.length, this.#bytes - at));
        const count = await readAll(fd, piece, at);
        if (count < piece.length) throw new Error("a spilled body has lost bytes");
        take(piece, at);
      }
    } finally {
      await closeFile(fd);
    }
  }

  /** Removes the file. If that fails, the next start removes it. */
  async remove(): Promise<void> {
    this.#bytes = 0;
    await removeFile(this.#findPath()).catch(() => undefined);
  }
}
