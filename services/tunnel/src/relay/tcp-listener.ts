// The public port of a TCP tunnel: each connection is a stream.
import { createServer, type Server, type Socket } from "node:net";
import { explainListenError } from "@platform/kernel/lifecycle";
import { PlatformError } from "@platform/kernel/errors";
import { ResetCode } from "../frame/format.ts";
import { COPIED_BYTES_MAX, type Stream } from "../frame/stream.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";

/** Options of {@link TcpListener}. */
export interface TcpListenerOptions {
  tunnel: ConnectedTunnel;
  /** Connections of all TCP tunnels. */
  budget: { open: number; readonly most: number };
  onError: (error: Error) => void;
}

const IDLE_MS = 3_600_000;

/** One port. */
export class TcpListener {
  readonly tunnel: ConnectedTunnel;
  readonly #options: TcpListenerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(options: TcpListenerOptions) {
    this.tunnel = options.tunnel;
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Throws 409 if the port cannot be used. */
  async listen(host: string | undefined, port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(host === undefined ? { port } : { host, port }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", this.#options.onError);
        resolve();
      });
    }).catch(async (error: unknown) => {
      const explained = await explainListenError(error, { host, port }, "the tunnel's port");
      throw new PlatformError("conflict", `The port ${port} cannot be used.`, { cause: explained });
    });
  }

  /** Closes the port and its connections. */
  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(socket: Socket): void {
    const { budget } = this.#options;
    socket.on("error", () => {});
    const { session, number } = this.tunnel;
    const isFull = budget.open >= budget.most || !session.isResponsive;
    const stream = isFull ? null : session.openStream(number, socket.remoteAddress ?? "");
    if (stream === null) {
      socket.resetAndDestroy();
      return;
    }
    budget.open++;
    this.#sockets.add(socket);
    socket.once("close", () => {
      budget.open--;
      this.#sockets.delete(socket);
    });
    splice(socket, stream);
  }
}

/** Relays bytes between a connection and a stream, with back-pressure both ways, until both have ended. */
function splice(socket: Socket, stream: Stream): void {
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  let hasEnded = false;
  let peerEnded = false;
  stream.listener = {
    onBytes: (bytes) => {
      stream.delivered += bytes.length;
      if (!socket.write(bytes)) stream.pause();
      if (bytes.length > COPIED_BYTES_MAX && socket.writableLength > 0) stream.keepReads();
    },
    onEnd: () => {
      peerEnded = true;
      socket.end();
    },
    onDrain: () => socket.resume(),
    onReset: () => {
      // After END the last bytes still have to reach the visitor.
      if (peerEnded) socket.destroySoon();
      else socket.resetAndDestroy();
    },
  };
  socket.on("data", (bytes: Buffer) => {
    if (!stream.write(bytes)) socket.pause();
  });
  socket.on("drain", () => stream.resume());
  socket.on("end", () => {
    hasEnded = true;
    stream.end();
  });
  socket.on("close", () => {
    // If both sides have ended, queued bytes are still on their way to the client.
    if (!hasEnded || !peerEnded) stream.reset(ResetCode.Cancelled);
  });
}
