// Listener before TLS that reads the first message of handshakes while a challenge is pending: for runtimes whose TLS cannot
// choose a certificate by the protocol that the client offers.
import { createServer as createTcpServer, type Server as TcpServer, type Socket } from "node:net";
import { ClientHelloReader } from "./client-hello.ts";

/** Options of {@link createChallengeFront}. */
export interface ChallengeFrontOptions {
  /** True while a certificate of a challenge is expected by somebody. */
  isPending: () => boolean;
  /** True for handshakes of a pending challenge. */
  isChallenge: (serverName: string, protocols: readonly string[]) => boolean;
  /** Handles the connection of a challenge, of which nothing has been read. */
  onChallenge: (socket: Socket) => void;
  /** Handles any other connection, of which nothing has been read. */
  onOther: (socket: Socket) => void;
  /** Time for the first message, in ms. */
  timeoutMs: number;
}

/** Creates the listener, which passes connections on with nothing read; those without a first message in time are closed. */
export function createChallengeFront(options: ChallengeFrontOptions): TcpServer {
  return createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // A connection beyond a limit.
    if (socket.destroyed) return;
    if (options.isPending()) sort(socket, options);
    else options.onOther(socket);
  });
}

function sort(socket: Socket, options: ChallengeFrontOptions): void {
  const { isChallenge, onChallenge, onOther, timeoutMs } = options;
  const chunks: Buffer[] = [];
  let bytes = 0;
  const reader = new ClientHelloReader();
  const end = (): void => void socket.destroy();
  const timer = setTimeout(end, timeoutMs);
  const finish = (pass: (socket: Socket) => void): void => {
    clearTimeout(timer);
    socket.off("data", onData);
    socket.off("error", end);
    socket.off("end", end);
    socket.pause();
    if (bytes > 0) socket.unshift(Buffer.concat(chunks, bytes));
    pass(socket);
  };
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    const reading = reader.add(chunk);
    if (reading.kind === "incomplete") return;
    const isFound = reading.kind === "hello" && isChallenge(reading.serverName, reading.protocols);
    finish(isFound ? onChallenge : onOther);
  };
  socket.on("data", onData);
  socket.on("error", end);
  socket.on("end", end);
  socket.once("close", () => clearTimeout(timer));
}
