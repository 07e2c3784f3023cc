// Delivers the reads of a socket without the stream's queue.
import { Socket } from "node:net";

/**
 * Receives the bytes of a read: `bytes[0, length)`. If `isShared`, the next read of any socket overwrites them, so they
 * must be used or copied before returning.
 */
export type ReadTaker = (bytes: Buffer, length: number, isShared: boolean) => void;

/** Delivers a socket's reads, in addition to a `data` listener, which receives those that went through the stream. */
export type ReadShortener = (socket: Socket, onRead: ReadTaker) => void;

interface ReadsIntoBuffer {
  useUserBuffer(buffer: Buffer): void;
}

/**
 * Creates a function that delivers a plain socket's reads without the stream's queue, which costs a tick and an event
 * per read. On Node the system reads into `buffer`, which is free outside the call; a function returns the buffer of the
 * socket's next read, after each one. While the socket is paused, and for its end, the stream works as usual.
 */
export function createReadShortener(buffer: Buffer | (() => Buffer)): ReadShortener {
  const symbols = findReadSymbols();
  if (symbols === undefined) return shortenPushes;
  return (socket, onRead) => {
    const parts = socket as unknown as Record<symbol, unknown> & { _handle?: ReadsIntoBuffer };
    const handle = parts._handle;
    if (handle?.useUserBuffer === undefined) {
      shortenPushes(socket, onRead);
      return;
    }
    const first = typeof buffer === "function" ? buffer() : buffer;
    parts[symbols.buffer] = first;
    parts[symbols.generator] = typeof buffer === "function" ? buffer : null;
    parts[symbols.callback] = (length: number, bytes: Buffer): boolean => {
      onRead(bytes, length, true);
      return true;
    };
    handle.useUserBuffer(first);
  };
}

/**
 * Node's `onread` lets all sockets read into one buffer, instead of a new `ArrayBuffer` of 64 KiB per read, but only
 * for outgoing sockets. Accepted sockets support it by internal symbols of Node; if these are not found, as on Bun,
 * reads use the stream.
 */
function findReadSymbols(): Record<"buffer" | "callback" | "generator", symbol> | undefined {
  const symbols = Object.getOwnPropertySymbols(new Socket());
  const find = (name: string) => symbols.find((symbol) => symbol.description === name);
  const buffer = find("kBuffer");
  const callback = find("kBufferCb");
  const generator = find("kBufferGen");
  if (buffer === undefined || callback === undefined || generator === undefined) return undefined;
  return { buffer, callback, generator };
}

function shortenPushes(socket: Socket, onRead: ReadTaker): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null || socket.isPaused() || socket.readableLength > 0) return push(chunk);
    onRead(chunk, chunk.length, false);
    return true;
  };
}
