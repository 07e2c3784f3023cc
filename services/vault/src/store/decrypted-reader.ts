// Reads an encrypted blob: as a stream while there is memory, frame by frame if memory is short.
import type { OpenBlob } from "../blob/blob-reader.ts";
import { BodyDecryptor, locateCiphertext, STORED_FRAME_BYTES } from "../blob/encryption.ts";
import { ROOM_TAKEN } from "../blob/read-window.ts";
import type { ReadWindow } from "../model/read-window.ts";

/** Options of {@link DecryptedReader}. */
export interface DecryptedReaderOptions {
  open: OpenBlob;
  key: Buffer;
  /** Range and total size of the body. */
  range: { start: number; end: number; size: number };
  window: ReadWindow | undefined;
  /** Returns a stored chunk after its decryption. */
  recycle: (chunk: Buffer) => void;
}

/**
 * Stored and decrypted bytes are both charged. The room of a chunk is given back with the last frame that it completes; by
 * then the client's socket is charged for the decrypted frames.
 *
 * Encrypted frames do not align with reads, so a stream holds the beginning of a frame between two reads. It must not wait
 * for room while it holds some: if there is none immediately, the stream ends, the beginning is dropped, and the frame is
 * read again as a whole in its turn.
 */
export class DecryptedReader {
  readonly #options: DecryptedReaderOptions;
  readonly #decryptor: BodyDecryptor;
  readonly #end: number;

  constructor(options: DecryptedReaderOptions) {
    const { key, range } = options;
    this.#options = options;
    this.#decryptor = new BodyDecryptor(key, range);
    this.#end = locateCiphertext(range.start, range.end, range.size).end;
  }

  /** The bytes of the body, in chunks of up to 64 KiB. */
  async *read(): AsyncGenerator<Buffer, void, undefined> {
    while (this.#decryptor.position < this.#end) {
      yield* this.#stream();
      if (this.#decryptor.position < this.#end) yield await this.#readFrame();
    }
  }

  async *#stream(): AsyncGenerator<Buffer, void, undefined> {
    const { open, window, recycle } = this.#options;
    const decryptor = this.#decryptor;
    const impatient = window && new ImpatientWindow(window);
    let taken = 0;
    try {
      for await (const chunk of open.read(decryptor.position, this.#end, impatient)) {
        taken += chunk.length;
        decryptor.feed(chunk);
        let plain: Buffer | undefined;
        do {
          if (plain !== undefined) yield plain;
          plain = decryptor.hasFrame ? decryptor.open() : undefined;
        } while (decryptor.hasFrame);
        recycle(chunk);
        window?.give(taken - decryptor.tailBytes);
        taken = decryptor.tailBytes;
        if (plain !== undefined) yield plain;
      }
    } catch (error) {
      if (!(error instanceof NoRoomNow)) throw error;
    } finally {
      decryptor.dropTail();
      window?.give(taken);
    }
  }

  async #readFrame(): Promise<Buffer> {
    const { open, window, recycle } = this.#options;
    const decryptor = this.#decryptor;
    const { position } = decryptor;
    const end = Math.min(position + STORED_FRAME_BYTES, this.#end);
    // Data is stored in blocks with checksums; an encrypted frame begins in one block and ends in the next.
    const room = window?.take(ROOM_TAKEN.bytes);
    if (room !== undefined) await room;
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of open.read(position, end, ROOM_TAKEN)) {
        decryptor.feed(chunk);
        chunks.push(chunk);
      }
      const plain = decryptor.open();
      for (const chunk of chunks) recycle(chunk);
      return plain;
    } finally {
      window?.give(ROOM_TAKEN.bytes);
    }
  }
}

/** Ends a read that finds no room, instead of waiting. */
class ImpatientWindow implements ReadWindow {
  isEnded = false;
  readonly #window: ReadWindow;

  constructor(window: ReadWindow) {
    this.#window = window;
  }

  get bytes(): number {
    return this.#window.bytes;
  }

  tryTake(bytes: number): boolean {
    return this.#window.tryTake(bytes);
  }

  take(bytes: number): undefined {
    if (this.#window.tryTake(bytes)) return;
    this.isEnded = true;
    throw new NoRoomNow();
  }

  give(bytes: number): void {
    this.#window.give(bytes);
  }
}

class NoRoomNow extends Error {
  override readonly name = "NoRoomNow";
}
