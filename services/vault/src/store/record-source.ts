// A body as the record that a store on one drive would have written, for another store.
import type { OpenBlob } from "../blob/blob-reader.ts";
import {
  encodeHead,
  encodeTrailer,
  FRAME_BYTES,
  measureFrames,
  sealFrame,
} from "../blob/layout.ts";
import type { RecordSource } from "../remote/remote.ts";
import type { RecordDescription, RecordSummary } from "./record-description.ts";

/** The identity and the content of a record. */
export interface NewRecord {
  id: number;
  stored: number;
  description: RecordDescription;
  summary: RecordSummary;
}

/** Streams a record: its head, the frames of an open body with new checksums, its trailer. */
export class StreamedRecord implements RecordSource {
  readonly bytes: number;
  /** Offset of the first frame. */
  readonly position: number;
  readonly #pieces: AsyncGenerator<Uint8Array, void, undefined>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor({ id, stored, description, summary }: NewRecord, body: OpenBlob) {
    const head = encodeHead(id, stored, description);
    const frames = measureFrames(stored);
    const trailer = encodeTrailer(summary, head.length + frames);
    this.position = head.length;
    this.bytes = head.length + frames + trailer.length;
    this.#pieces = listPieces(head, body, stored, trailer);
  }

  /** The next `length` bytes: records are read from their beginning to their end. */
  async read(_position: number, length: number): Promise<Uint8Array> {
    const bytes = Buffer.allocUnsafe(length);
    let at = 0;
    while (at < length) {
      if (this.#rest.length === 0) {
        const next = await this.#pieces.next();
        if (next.done === true) throw new Error("a record ends before its length");
        this.#rest = next.value;
      }
      const piece = this.#rest.subarray(0, length - at);
      bytes.set(piece, at);
      at += piece.length;
      this.#rest = this.#rest.subarray(piece.length);
    }
    return bytes;
  }

  /** Ends the reading of the body. */
  async close(): Promise<void> {
    await this.#pieces.return();
  }
}

async function* listPieces(
  head: Buffer,
  body: OpenBlob,
  stored: number,
  trailer: Buffer,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield head;
  const frame = Buffer.allocUnsafe(measureFrames(Math.min(stored, FRAME_BYTES)));
  let filled = 0;
  let read = 0;
  for await (const chunk of body.read(0, stored)) {
    for (let at = 0; at < chunk.length;) {
      const wanted = Math.min(FRAME_BYTES, stored - read + filled) - filled;
      const taken = Math.min(wanted, chunk.length - at);
      frame.set(chunk.subarray(at, at + taken), filled);
      filled += taken;
      read += taken;
      at += taken;
      if (taken < wanted) continue;
      yield frame.subarray(0, sealFrame(frame, filled));
      filled = 0;
    }
  }
  if (read !== stored) throw new Error("a body ends before its length");
  yield trailer;
}
