// Closing behind an early answer: who is still sending a body that nobody wants gets to read why. A socket that is closed
// with unread bytes in it resets the connection, and the reset overtakes the answer (RFC 9112 section 9.6).
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** Bytes of an unread body after which a lingering close gives up. */
const LINGER_BYTES_MAX = 16_777_216;
const WATCH_MS = 20;

/** What is under way on a connection. */
interface Exchange {
  request: IncomingMessage;
  isClosing: boolean;
}

/** Makes the connections of one listener linger. */
export class LingeringClose {
  readonly #exchanges = new WeakMap<Socket, Exchange>();
  readonly #lingerMs: number;

  /** `lingerMs`: how long the rest of a body is read and thrown away behind an answer that closes. */
  constructor(lingerMs: number) {
    this.#lingerMs = lingerMs;
  }

  /** Sees a request; false: the answer before it closes this connection, so this one is not to be answered. */
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

  // Both node:http (behind `Connection: close`) and the adapter (behind a body left unread) close by `destroySoon`.
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
  // By the clock and not by the body's chunks, of which node:http shows none once it has given the body up.
  const watch = setInterval(() => {
    if (performance.now() > deadline || socket.bytesRead > bytesMax) socket.destroy();
  }, WATCH_MS);
  socket.once("close", () => clearInterval(watch));
  socket.end();
  // Nothing unread is left then: closing resets nothing.
  request.once("end", destroySoon);
  request.resume();
}
