// Listens to the socket of a connection, and hands it over to a handler that switches protocols.
import type { Socket } from "node:net";
import type { ReadShortener } from "@platform/kernel/sockets";

/** Adds listeners to a socket, and one that ignores errors; the returned function removes all but that. */
export function listenToSocket(
  socket: Socket,
  listeners: Readonly<Record<string, (chunk: Buffer) => void>>,
): () => void {
  // "close" always follows.
  socket.on("error", () => {});
  for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener);
  };
}

/** Emits the reads of a plain socket as `data`, which pass by the stream's queue on this connection. */
export function passReadsOn(socket: Socket, shortenReads: ReadShortener): void {
  shortenReads(socket, (bytes, length, isShared) => {
    socket.emit("data", isShared ? Buffer.from(bytes.subarray(0, length)) : bytes);
  });
}
