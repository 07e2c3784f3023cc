// Reads stored bytes, verifying the checksum of each block, one frame ahead of the consumer.
import { fstatSync } from "node:fs";
import type { FileLease, OpenFiles } from "@platform/kernel/files";
import { readAll, type StoreFolders } from "../disk/files.ts";
import type { BlobRecord } from "../model/blob.ts";
import type { ReadWindow } from "../model/read-window.ts";
import { StoreError } from "../model/store-error.ts";
import type { FrameMemory } from "./frame-memory.ts";
import { readFrames, type FrameSource } from "./frame-reader.ts";
import { FRAME_BYTES, measureFrames } from "./layout.ts";

/** A blob opened for reading: its file stays readable until `close`, even if it is renamed or deleted. */
export interface OpenBlob {
  /**
   * Stored bytes from `start` up to, not including, `end`. Each chunk has been charged to the read window; the consumer
   * gives its bytes back to the window.
   */
  read(start: number, end: number, window?: ReadWindow): AsyncGenerator<Buffer, void, undefined>;
  close(): void;
}

const SHORT = "Stored data is truncated";

export class BlobReader {
  readonly #folders: StoreFolders;
  readonly #files: OpenFiles<number>;
  readonly #memory: FrameMemory;
  corruptBlocks = 0;

  constructor(folders: StoreFolders, files: OpenFiles<number>, memory: FrameMemory) {
    this.#folders = folders;
    this.#files = files;
    this.#memory = memory;
  }

  /** Opens a blob that is not composite. Rejects with `ENOENT` if its file is missing. */
  async open(blob: BlobRecord): Promise<OpenBlob> {
    const { place } = blob;
    if (place.kind === "inline") return openInline(place.data);
    if (place.kind === "parts" || place.kind === "remote")
      throw new TypeError(`a blob of kind ${place.kind} has no bytes on a drive`);
    const path =
      place.kind === "segment" ? this.#folders.segment(place.segment) : this.#folders.file(blob.id);
    const lease = await this.#files.use(path);
    // A truncated file is detected before the response begins; its inode is cached.
    if (place.kind === "file" && blob.stored > FRAME_BYTES) {
      if (fstatSync(lease.file).size < place.position + measureFrames(blob.stored)) {
        lease.release();
        this.corruptBlocks += 1;
        throw new StoreError("InternalError", SHORT);
      }
    }
    let isOpen = true;
    return {
      read: (start, end, window) =>
        readFrames(this.#createSource(lease, blob), blob, {
          position: place.position,
          start,
          end,
          window,
        }),
      close: () => {
        if (isOpen) lease.release();
        isOpen = false;
      },
    };
  }

  #createSource({ file }: FileLease<number>, { id }: BlobRecord): FrameSource {
    return {
      read: (position, length, isTable) =>
        readExactly(
          file,
          isTable ? Buffer.allocUnsafe(length) : this.#memory.take(length),
          position,
        ),
      failCorrupt: () => {
        this.corruptBlocks += 1;
        return new StoreError("InternalError", `Stored data is damaged (blob ${id.toString(16)})`);
      },
    };
  }
}

function openInline(data: Uint8Array): OpenBlob {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    async *read(start, end, window) {
      if (end <= start) return;
      const room = window?.take(end - start);
      if (room !== undefined) await room;
      yield bytes.subarray(start, end);
    },
    close: () => undefined,
  };
}

async function readExactly(fd: number, bytes: Buffer, position: number): Promise<Buffer> {
  const count = await readAll(fd, bytes, position);
  if (count < bytes.length) throw new StoreError("InternalError", SHORT);
  return bytes;
}
