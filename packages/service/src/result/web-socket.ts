// WebSocket upgrades as results.
import type { WebSocket } from "ws";

/** A message: text, or bytes. */
export type SocketMessage = string | Buffer;

/** Handlers of a WebSocket. An error that one throws closes the socket with 1011 and is logged. */
export interface SocketHandlers {
  /** The connection is open. */
  open?(socket: WebSocket): void | Promise<void>;
  /** Messages are handled one after another. */
  message?(socket: WebSocket, message: SocketMessage): void | Promise<void>;
  /** The connection has ended, with the code of RFC 6455 section 7.4. */
  close?(socket: WebSocket, code: number): void;
  /** Maximum size of a message in bytes; default 1 048 576 (1009). */
  messageBytesMax?: number;
  /**
   * Origins of pages that may connect, such as `https://app.example.com`; default: only pages of this service. Programs
   * that are not browsers send no Origin and are not affected.
   */
  origins?: readonly string[];
}

/** A WebSocket as a result. */
export class SocketUpgrade {
  readonly handlers: SocketHandlers;

  constructor(handlers: SocketHandlers) {
    this.handlers = handlers;
  }
}

/**
 * Upgrades a GET request to a WebSocket; other requests receive 426. Idle connections are checked every 30 s, clients
 * that do not read are disconnected at 16 MiB of unsent messages.
 *
 * ```ts
 * route("GET", "/echo", () => webSocket({ message: (socket, text) => socket.send(text) }));
 * ```
 */
export function webSocket(handlers: SocketHandlers): SocketUpgrade {
  return new SocketUpgrade(handlers);
}
