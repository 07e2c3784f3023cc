// Large writes to sockets in slices, one a turn of the event loop: the system copies megabytes within one call, and TLS
// encrypts them.
import type { Socket } from "node:net";

/** Bytes that are handed to the system in a turn. */
const SLICE_BYTES = 1_048_576;
/** Writes up to this size stay whole: answers are often a little more than 1 MiB. */
const WHOLE_BYTES_MAX = 2 * SLICE_BYTES;

interface Piece {
  chunk: Buffer;
  encoding: string;
}

/** Pieces in the form in which a stream hands over those that wait. */
type Pieces = Piece[] & { allBuffers?: boolean };
type Done = (error?: Error | null) => void;

interface VectoredSocket {
  _writev?: ((pieces: Pieces, done: Done) => void) | null;
}

/**
 * Lets a socket hand corked writes to the system in slices. The stream counts them until all of them are written, as it does
 * anyway. On Bun nothing changes.
 */
export function sliceWrites(socket: Socket): void {
  const vectored = socket as unknown as VectoredSocket;
  const writeVector = vectored._writev;
  // Bun's takes another form.
  if (typeof writeVector !== "function" || process.versions.bun !== undefined) return;
  vectored._writev = (pieces, done) => {
    let bytes = 0;
    for (const { chunk } of pieces) bytes += chunk.length;
    if (bytes <= WHOLE_BYTES_MAX || pieces.allBuffers !== true) {
      writeVector.call(socket, pieces, done);
      return;
    }
    const slices = slice(pieces);
    let at = 0;
    const next: Done = (error) => {
      if (error instanceof Error || at === slices.length) done(error);
      else if (at === slices.length - 1) writeVector.call(socket, slices[at++]!, done);
      else {
        const own = slices[at++]!;
        writeVector.call(socket, own, (failure) => setImmediate(next, failure));
      }
    };
    next();
  };
}

function slice(pieces: Pieces): Pieces[] {
  const slices: Pieces[] = [];
  let current: Pieces = [];
  let room = SLICE_BYTES;
  for (const { chunk, encoding } of pieces) {
    for (let from = 0; from < chunk.length || from === 0;) {
      const part = chunk.subarray(from, from + room);
      current.push({ chunk: part, encoding });
      from += part.length;
      room -= part.length;
      if (room > 0) break;
      slices.push(current);
      [current, room] = [[], SLICE_BYTES];
    }
  }
  if (current.length > 0) slices.push(current);
  for (const one of slices) one.allBuffers = true;
  return slices;
}
