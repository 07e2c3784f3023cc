// A shorter way from the system's reads to the connection.
import { Socket } from "node:net";

/** Takes a socket's reads. */
export interface ReadTarget {
  /** A read; it may be kept. */
  onData(chunk: Buffer): void;
  /** The first `length` bytes of `buffer` were read: true where they are taken at once, and nothing of them is kept. */
  takeBorrowed(buffer: Buffer, length: number): boolean;
}

/** Hands a socket's reads to a target. */
export type ReadShortener = (socket: Socket, target: ReadTarget) => void;

interface ReadsIntoBuffer {
  useUserBuffer(buffer: Buffer): void;
}

/**
 * Makes what hands a socket's reads on without the way through the stream's queue, which costs a tick and an event for each
 * read. `buffer` is where the system puts them first, and free outside of the call: what is to be kept is copied, which
 * targets that want no more than to look at it are spared. While the socket is paused, and for the end, the stream does its
 * work as ever.
 */
export function createReadShortener(buffer: Buffer): ReadShortener {
  const symbols = findReadSymbols();
  if (symbols === undefined) return shortenPushes;
  return (socket, target) => {
    const parts = socket as unknown as Record<symbol, unknown> & { _handle?: ReadsIntoBuffer };
    const handle = parts._handle;
    if (handle?.useUserBuffer === undefined) {
      shortenPushes(socket, target);
      return;
    }
    parts[symbols.buffer] = buffer;
    parts[symbols.callback] = (length: number): boolean => {
      if (target.takeBorrowed(buffer, length)) return true;
      const chunk = Buffer.allocUnsafe(length);
      buffer.copy(chunk, 0, 0, length);
      target.onData(chunk);
      return true;
    };
    handle.useUserBuffer(buffer);
  };
}

/**
 * Node's `onread`, with which all sockets read into one buffer instead of each read into a new one (an `ArrayBuffer` of
 * 64 KiB that is cut and swept), is for sockets that connect. Accepted ones know it, too, under symbols of Node's own: where
 * these are not found, as on Bun, reads take the longer way.
 */
function findReadSymbols(): { buffer: symbol; callback: symbol } | undefined {
  const symbols = Object.getOwnPropertySymbols(new Socket());
  const buffer = symbols.find((symbol) => symbol.description === "kBuffer");
  const callback = symbols.find((symbol) => symbol.description === "kBufferCb");
  return buffer === undefined || callback === undefined ? undefined : { buffer, callback };
}

function shortenPushes(socket: Socket, target: ReadTarget): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null || socket.isPaused() || socket.readableLength > 0) return push(chunk);
    target.onData(chunk);
    return true;
  };
}
