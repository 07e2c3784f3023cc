// A shorter way from the system's reads to whoever serves a socket.
import { Socket } from "node:net";

/**
 * Takes what a read has brought: `bytes[0, length)`. Where they are shared, the next read of any socket overwrites them: they
 * are used, or copied, before this returns. Else they may be kept.
 */
export type ReadTaker = (bytes: Buffer, length: number, isShared: boolean) => void;

/** Hands a socket's reads over. It comes beside a `data` listener, which takes those that went through the stream. */
export type ReadShortener = (socket: Socket, onRead: ReadTaker) => void;

interface ReadsIntoBuffer {
  useUserBuffer(buffer: Buffer): void;
}

/**
 * Makes what hands a plain socket's reads over without the way through the stream's queue, which costs a tick and an event
 * for each read. On Node the system puts all of them into `buffer`, which is free outside of the call. While the socket is
 * paused, and for the end, the stream does its work as ever.
 */
export function createReadShortener(buffer: Buffer): ReadShortener {
  const symbols = findReadSymbols();
  if (symbols === undefined) return shortenPushes;
  return (socket, onRead) => {
    const parts = socket as unknown as Record<symbol, unknown> & { _handle?: ReadsIntoBuffer };
    const handle = parts._handle;
    if (handle?.useUserBuffer === undefined) {
      shortenPushes(socket, onRead);
      return;
    }
    parts[symbols.buffer] = buffer;
    parts[symbols.callback] = (length: number): boolean => {
      onRead(buffer, length, true);
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

function shortenPushes(socket: Socket, onRead: ReadTaker): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null || socket.isPaused() || socket.readableLength > 0) return push(chunk);
    onRead(chunk, chunk.length, false);
    return true;
  };
}
