// Lingering close after an early response: the client can read the response although it is still sending. Closing a
// socket with unread bytes resets the connection, and the reset may destroy the response (RFC 9112 section 9.6).
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { every } from "../time/index.ts";

/** Maximum number of bytes of an unread body that are discarded. */
const LINGER_BYTES_MAX = 16_777_216;
const WATCH_MS = 20;

/** State of a connection. */
interface Exchange {
  request: IncomingMessage;
  isClosing: boolean;
}

/** Lingering close for the connections of a listener. */
export class LingeringClose {
  readonly #exchanges = new WeakMap<Socket, Exchange>();
  readonly #lingerMs: number;

  /** `lingerMs`: maximum time for which the rest of a body is read and discarded. */
  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs;
  }

  /** Registers a request. Returns false if the connection is closing, so that the request must not be handled. */
  admit(request: IncomingMessage): boolean {
    const { socket } = request;
    const exchange = this.#exchanges.get(socket);
    if (exchange === undefined) {
      this.#follow(socket, { request, isClosing: false });
      return true;
    }
    if (exchange.isClosing) {
      socket.destroy();
      return false;
    }
    exchange.request = request;
    return true;
  }

  // Both node:http (after `Connection: close`) and the adapter (after an unread body) close by `destroySoon`.
  #follow(socket: Socket, exchange: Exchange): void {
    this.#exchanges.set(socket, exchange);
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      const { request } = exchange;
      if (exchange.isClosing) return;
      exchange.isClosing = true;
      if (request.complete || request.destroyed) destroySoon();
      else discardRest(socket, request, this.#lingerMs, destroySoon);
    };
  }
}

function discardRest(
  socket: Socket,
  request: IncomingMessage,
  lingerMs: number,
  destroySoon: () => void,
): void {
  const deadline = performance.now() + lingerMs;
  const bytesMax = socket.bytesRead + LINGER_BYTES_MAX;
  // Polls, because node:http emits no chunks of a body that it has abandoned.
  const watch = every(
    WATCH_MS,
    () => {
      if (performance.now() > deadline || socket.bytesRead > bytesMax) socket.destroy();
    },
    () => socket.destroy(),
  );
  socket.once("close", () => void watch.stop());
  socket.end();
  // No unread bytes remain, so closing does not reset the connection.
  request.once("end", destroySoon);
  request.resume();
}
