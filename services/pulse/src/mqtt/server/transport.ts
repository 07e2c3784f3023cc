// The transports of MQTT: TCP and TLS sockets, WebSockets.
import type { Socket } from "node:net";
import type { Outflow } from "@platform/kernel/sockets";
import type { WebSocket } from "ws";

/** The bytes of a connection. */
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
  write(bytes: Buffer): void;
  pause(): void;
  resume(): void;
  /** Closes after everything written was sent. */
  end(): void;
  destroy(): void;
}

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

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
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

/** A WebSocket (section 6): packets in binary frames, not aligned with them. */
export class WebSocketTransport implements Transport {
  readonly remoteAddress: string;
  readonly isForeignPage: boolean;
  readonly outflow: Outflow | undefined;
  receivedBytes = 0;
  readonly #client: WebSocket;
  readonly #onSent: (error?: Error | null) => void;

  constructor(
    client: WebSocket,
    peer: { remoteAddress: string; isForeignPage: boolean; outflow: Outflow | undefined },
    onDrain: () => void,
  ) {
    this.#client = client;
    this.remoteAddress = peer.remoteAddress;
    this.isForeignPage = peer.isForeignPage;
    this.outflow = peer.outflow;
    this.#onSent = (error) => {
      if (error === undefined || error === null) onDrain();
    };
  }

  get unsentBytes(): number {
    return this.#client.bufferedAmount;
  }

  write(bytes: Buffer): void {
    this.#client.send(bytes, { binary: true }, this.#onSent);
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
