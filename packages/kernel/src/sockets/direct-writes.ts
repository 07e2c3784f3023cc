// Writes to sockets without the stream's queue.
import type { Socket } from "node:net";

/**
 * Writes to a plain socket whose stream holds no bytes (`writableLength` is 0). Returns true if the system has accepted
 * all of them; otherwise they are the stream's, as after `socket.write`, and must not be changed.
 */
export type DirectWriter = (socket: Socket, bytes: Buffer) => boolean;

interface Handle {
  /** Returns 0, or the number of an error, or a request that is not complete. */
  writeBuffer: (this: Handle, request: null, bytes: Buffer) => unknown;
}

/**
 * Creates a function that offers bytes to the system before it involves the stream. The system nearly always accepts a
 * whole message, and then the stream has nothing to do; otherwise it continues with the pending write as with its own.
 *
 * Sockets have no such function: it uses Node's handle of the socket. The first write shows if this Node calls the handle
 * in the same way, with no request object; if not, and on Bun, every write is one of the stream.
 */
export function createDirectWriter(): DirectWriter {
  let isSupported: boolean | undefined;
  return (socket, bytes) => {
    const handle = (socket as unknown as { _handle?: Handle | null })._handle;
    if (isSupported === true && handle !== null && handle !== undefined) {
      const outcome = handle.writeBuffer(null, bytes);
      if (outcome === 0) return true;
      handOver(socket, handle, bytes, outcome);
    } else if (isSupported === undefined && typeof handle?.writeBuffer === "function") {
      const { request } = writeObserved(socket, handle, bytes);
      isSupported = request === null;
    } else socket.write(bytes);
    return socket.writableLength === 0;
  };
}

/** Lets the stream wait for a pending write, or report its error, as if it had called the handle itself. */
function handOver(socket: Socket, handle: Handle, bytes: Buffer, outcome: unknown): void {
  const { writeBuffer } = handle;
  let isTaken = false;
  handle.writeBuffer = () => {
    isTaken = true;
    return outcome;
  };
  socket.write(bytes);
  handle.writeBuffer = writeBuffer;
  // The stream would write the bytes again.
  if (!isTaken) socket.destroy();
}

/** Writes by the stream; returns the request with which it called the handle. */
function writeObserved(socket: Socket, handle: Handle, bytes: Buffer): { request: unknown } {
  const { writeBuffer } = handle;
  const observed: { request: unknown } = { request: undefined };
  handle.writeBuffer = (request, content) => {
    observed.request = request;
    return writeBuffer.call(handle, request, content);
  };
  socket.write(bytes);
  handle.writeBuffer = writeBuffer;
  return observed;
}
