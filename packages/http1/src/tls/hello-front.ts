// Listener before TLS that reads the first message of handshakes while their handling depends on it: on certificates that a
// runtime cannot choose by the protocol that the client offers, and on the keys of the client's ticket.
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from "node:net";
import { type ClientHello, ClientHelloReader } from "./client-hello.ts";

/** Options of {@link createHelloFront}. */
export interface HelloFrontOptions {
  /** True while connections are handled by their first message. */
  isNeeded: () => boolean;
  /** Handles a connection of which nothing has been read; `hello` is undefined if it is not needed, or not valid. */
  onConnection: (socket: Socket, hello: ClientHello | undefined) => void;
  /** Time for the first message, in ms. */
  timeoutMs: number;
}

/** Creates the listener, which passes connections on with nothing read; those without a first message in time are closed. */
export function createHelloFront(options: HelloFrontOptions): TcpServer {
  return createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // A connection beyond a limit.
    if (socket.destroyed) return;
    if (options.isNeeded()) sort(socket, options);
    else options.onConnection(socket, undefined);
  });
}

function sort(socket: Socket, { onConnection, timeoutMs }: HelloFrontOptions): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const reader = new ClientHelloReader();
  const end = (): void => void socket.destroy();
  const timer = setTimeout(end, timeoutMs);
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    const reading = reader.add(chunk);
    if (reading.kind === "incomplete") return;
    clearTimeout(timer);
    socket.off("data", onData);
    socket.off("error", end);
    socket.off("end", end);
    socket.pause();
    socket.unshift(Buffer.concat(chunks, bytes));
    onConnection(socket, reading.kind === "hello" ? reading : undefined);
  };
  socket.on("data", onData);
  socket.on("error", end);
  socket.on("end", end);
  socket.once("close", () => clearTimeout(timer));
}
