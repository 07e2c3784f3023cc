// The bytes of a connection of a wire protocol: TCP and TLS sockets, WebSockets.
import { isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import type { Outflow } from "@platform/kernel/sockets";
import type { WebSocket } from "ws";

/** The transport of a connection. */
export interface Transport {
  readonly remoteAddress: string;
  /** Whether the client is a page of a browser that this broker does not know. */
  readonly isForeignPage: boolean;
  /** Counts the bytes that the client has not read; undefined for WebSockets outside of the HTTP listener. */
  readonly outflow: Outflow | undefined;
  /** Bytes that were written and not yet sent. */
  readonly unsentBytes: number;
  /** Bytes received so far. */
  readonly receivedBytes: number;
  /** Writes messages in order; calls `onSent` when the last one was handed to the network. */
  write(messages: readonly Buffer[], onSent: () => void): void;
  pause(): void;
  resume(): void;
  /** Closes after everything written was sent. */
  end(): void;
  destroy(): void;
}

/** Messages up to this size are copied into one write. */
const JOINED_BYTES_MAX = 16 * 1024;

/** A TCP or TLS socket. */
export class SocketTransport implements Transport {
  readonly remoteAddress: string;
  readonly isForeignPage = false;
  outflow: Outflow | undefined;
  readonly #socket: Socket;

  constructor(socket: Socket, remoteAddress: string) {
    this.#socket = socket;
    this.remoteAddress = remoteAddress;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  get receivedBytes(): number {
    return this.#socket.bytesRead;
  }

  write(messages: readonly Buffer[], onSent: () => void): void {
    const bytes = messages.reduce((sum, { length }) => sum + length, 0);
    const isJoined = bytes <= JOINED_BYTES_MAX * messages.length;
    const parts = isJoined && messages.length > 1 ? [Buffer.concat(messages, bytes)] : messages;
    if (parts.length > 1) this.#socket.cork();
    const last = parts.length - 1;
    for (let at = 0; at < last; at++) this.#socket.write(parts[at]!);
    this.#socket.write(parts[last]!, (error) => {
      if (error === undefined || error === null) onSent();
    });
    if (parts.length > 1) this.#socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.end();
    // Further bytes of the client are dropped, so that its end is seen.
    this.#socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** A WebSocket: each message is a frame of its own. */
export class WebSocketTransport implements Transport {
  readonly remoteAddress: string;
  readonly isForeignPage: boolean;
  readonly outflow: Outflow | undefined;
  receivedBytes = 0;
  /** True if messages that are text are sent as text frames. */
  isText = false;
  readonly #client: WebSocket;

  constructor(
    client: WebSocket,
    peer: { remoteAddress: string; isForeignPage: boolean; outflow: Outflow | undefined },
  ) {
    this.#client = client;
    this.remoteAddress = peer.remoteAddress;
    this.isForeignPage = peer.isForeignPage;
    this.outflow = peer.outflow;
  }

  get unsentBytes(): number {
    return this.#client.bufferedAmount;
  }

  write(messages: readonly Buffer[], onSent: () => void): void {
    for (const [at, message] of messages.entries()) {
      const binary = !this.isText || !isUtf8(message);
      if (at < messages.length - 1) this.#client.send(message, { binary });
      else {
        this.#client.send(message, { binary }, (error) => {
          if (error === undefined || error === null) onSent();
        });
      }
    }
  }

  pause(): void {
    this.#client.pause();
  }

  resume(): void {
    this.#client.resume();
  }

  end(): void {
    this.#client.resume();
    this.#client.close(1000);
  }

  destroy(): void {
    this.#client.terminate();
  }
}
