// Writes one shard: staged, synced, then renamed.
import { closeFile, openFile, removeFile, renameFile, syncData, writeAll } from "../disk/files.ts";
import { encodeHead, encodeTrailer, sealFrame } from "./layout.ts";
import type { Drive } from "./drive/drive.ts";
import type { BlobId } from "../model/blob.ts";

/** A shard that is being written to its drive. */
export class ShardFile {
  readonly drive: Drive;
  readonly #id: BlobId;
  readonly #head: Buffer;
  readonly #losses: number;
  #fd: number | undefined;
  #position: number;
  #isPublished = false;

  /** `stored` is the number of data bytes of the shard. */
  constructor(drive: Drive, id: BlobId, stored: number, description: unknown) {
    this.drive = drive;
    this.#id = id;
    this.#losses = drive.losses;
    this.#head = encodeHead(id, stored, description);
    this.#position = this.#head.length;
  }

  /** True if the drive is absent, or was absent at any time since the write of the shard started. */
  get isLost(): boolean {
    return !this.drive.isPresent || this.drive.losses !== this.#losses;
  }

  get headBytes(): number {
    return this.#head.length;
  }

  /** Bytes written so far. */
  get extent(): number {
    return this.#position;
  }

  /** Appends a unit. The buffer must have room for its checksums and must not change until this resolves. */
  async write(frame: Buffer, dataBytes: number): Promise<void> {
    const bytes = sealFrame(frame, dataBytes);
    const fd = await this.#open();
    await writeAll(fd, [frame.subarray(0, bytes)], this.#position);
    this.#position += bytes;
  }

  /** Makes the shard durable under its final name. */
  async publish(summary: unknown): Promise<void> {
    const { folders, folderSync } = this.drive;
    const fd = await this.#open();
    const trailer = encodeTrailer(summary, this.#position);
    await writeAll(fd, [trailer], this.#position);
    this.#position += trailer.length;
    await syncData(fd);
    this.#fd = undefined;
    await closeFile(fd);
    const path = folders.file(this.#id);
    this.drive.files.forget(path);
    await renameFile(folders.staged(this.#id), path);
    this.#isPublished = true;
    await folderSync.sync(folders.fileFolder(this.#id));
  }

  /** Removes the shard. If that fails, the next start or the scrubber removes it. */
  async discard(): Promise<void> {
    const { folders } = this.drive;
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await closeFile(fd).catch(() => undefined);
    const path = this.#isPublished ? folders.file(this.#id) : folders.staged(this.#id);
    await removeFile(path).catch(() => undefined);
  }

  async #open(): Promise<number> {
    if (this.#fd !== undefined) return this.#fd;
    this.#fd = await openFile(this.drive.folders.staged(this.#id), "w");
    await writeAll(this.#fd, [this.#head], 0);
    return this.#fd;
  }
}
