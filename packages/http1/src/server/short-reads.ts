// A shorter way from the system's reads to the connection.
import { Socket } from "node:net";

/** Hands a socket's reads to `onData`. */
export type ReadShortener = (socket: Socket, onData: (chunk: Buffer) => void) => void;

interface ReadsIntoBuffer {
  useUserBuffer(buffer: Buffer): void;
}

/**
 * Makes what hands a socket's reads to `onData` without the way through the stream's queue, which costs a tick and an event
 * for each read. Chunks may be kept; `buffer` is where the system puts them first, and free outside of the call. While the
 * socket is paused, and for the end, the stream does its work as ever.
 */
export function createReadShortener(buffer: Buffer): ReadShortener {
  const symbols = findReadSymbols();
  if (symbols === undefined) return shortenPushes;
  return (socket, onData) => {
    const parts = socket as unknown as Record<symbol, unknown> & { _handle?: ReadsIntoBuffer };
    const handle = parts._handle;
    if (handle?.useUserBuffer === undefined) {
      shortenPushes(socket, onData);
      return;
    }
    parts[symbols.buffer] = buffer;
    parts[symbols.callback] = (length: number): boolean => {
      const chunk = Buffer.allocUnsafe(length);
      buffer.copy(chunk, 0, 0, length);
      onData(chunk);
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

function shortenPushes(socket: Socket, onData: (chunk: Buffer) => void): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null || socket.isPaused() || socket.readableLength > 0) return push(chunk);
    onData(chunk);
    return true;
  };
}
