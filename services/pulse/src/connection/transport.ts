// The bytes of a connection of a wire protocol: TCP and TLS sockets, WebSockets.
import { isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { isLoopback } from "@platform/kernel/network";
import { sliceWrites, type Outflow } from "@platform/kernel/sockets";
import type { WebSocket } from "ws";
import type { ConnectedClient, ListedConnection } from "./listed-connection.ts";

/** The transport of a connection. */
export interface Transport {
  readonly kind: ListedConnection["transport"];
  readonly remoteAddress: string;
  /** Set by the connection when its client is known. */
  describeClient: (() => ConnectedClient | undefined) | undefined;
  /** True if the client is a program on this machine, as far as it can be told: see `SocketTransport`, `WebSocketUpgrades`. */
  readonly isLocal: boolean;
  /** Counts the bytes that the client has not read; undefined for WebSockets outside of the HTTP listener. */
  readonly outflow: Outflow | undefined;
  /** Bytes that were written and not yet sent. */
  readonly unsentBytes: number;
  /** Bytes received so far. */
  readonly receivedBytes: number;
  /** Writes messages in order; calls `onSent` when the last one was handed to the network. */
  write(messages: readonly Buffer[], onSent?: () => void): void;
  pause(): void;
  resume(): void;
  /** Closes after everything written was sent. */
  end(): void;
  destroy(): void;
}

/**
 * The frames of a WebSocket: `messages`, each message in a frame of its own, as text if the client uses text frames; or
 * `bytes`, binary frames that are not aligned with messages.
 */
export type Framing = "messages" | "bytes";

/** Messages up to this size on average, or more than this number of them, are copied into one write. */
const JOINED_BYTES_MAX = 16 * 1024;
const SEPARATE_MAX = 64;

/**
 * A TCP or TLS socket. Its peer is all that is known of the client: the clients of a local proxy or tunnel count as programs
 * on this machine.
 */
export class SocketTransport implements Transport {
  readonly kind: "tcp" | "tls";
  readonly remoteAddress: string;
  describeClient: Transport["describeClient"];
  readonly isLocal: boolean;
  readonly socket: Socket;
  outflow!: Outflow;

  constructor(socket: Socket) {
    this.socket = socket;
    sliceWrites(socket);
    this.kind = socket instanceof TLSSocket ? "tls" : "tcp";
    this.remoteAddress = plainAddress(socket.remoteAddress);
    this.isLocal = isLoopback(this.remoteAddress);
  }

  /** The address that the client connected to. */
  get local(): { host: string; port: number } {
    return { host: plainAddress(this.socket.localAddress), port: this.socket.localPort ?? 0 };
  }

  get unsentBytes(): number {
    return this.socket.writableLength;
  }

  get receivedBytes(): number {
    return this.socket.bytesRead;
  }

  write(messages: readonly Buffer[], onSent?: () => void): void {
    const parts = joinSmall(messages);
    const last = parts.length - 1;
    if (last > 0) this.socket.cork();
    for (let at = 0; at < last; at++) this.socket.write(parts[at]!);
    this.socket.write(parts[last]!, onSent === undefined ? undefined : ifDone(onSent));
    if (last > 0) this.socket.uncork();
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  end(): void {
    this.socket.end();
    // Further bytes of the client are dropped, so that its end is seen.
    this.socket.resume();
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** The client of a WebSocket. */
export interface WebSocketPeer {
  remoteAddress: string;
  isLocal: boolean;
  outflow: Outflow | undefined;
}

/** A WebSocket. */
export class WebSocketTransport implements Transport {
  readonly kind = "websocket";
  readonly remoteAddress: string;
  describeClient: Transport["describeClient"];
  readonly isLocal: boolean;
  readonly outflow: Outflow | undefined;
  receivedBytes = 0;
  /** True if messages that are text are sent as text frames. */
  isText = false;
  /** Called when something was handed to the network. */
  onDrain: (() => void) | undefined;
  readonly #client: WebSocket;
  readonly #framing: Framing;

  constructor(client: WebSocket, peer: WebSocketPeer, framing: Framing) {
    this.#client = client;
    this.#framing = framing;
    this.remoteAddress = peer.remoteAddress;
    this.isLocal = peer.isLocal;
    this.outflow = peer.outflow;
  }

  get unsentBytes(): number {
    return this.#client.bufferedAmount;
  }

  write(messages: readonly Buffer[], onSent?: () => void): void {
    const frames = this.#framing === "bytes" ? joinSmall(messages) : messages;
    const last = frames.length - 1;
    for (let at = 0; at < last; at++) this.#send(frames[at]!);
    const done = (): void => {
      onSent?.();
      this.onDrain?.();
    };
    this.#send(frames[last]!, ifDone(done));
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

  #send(frame: Buffer, onSent?: (error?: Error | null) => void): void {
    this.#client.send(frame, { binary: !this.isText || !isUtf8(frame) }, onSent);
  }
}

/** Converts IPv4-mapped addresses of IPv6 sockets. */
export function plainAddress(address = ""): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}

function joinSmall(messages: readonly Buffer[]): readonly Buffer[] {
  if (messages.length === 1) return messages;
  const bytes = messages.reduce((sum, { length }) => sum + length, 0);
  const isJoined = messages.length > SEPARATE_MAX || bytes <= JOINED_BYTES_MAX * messages.length;
  return isJoined ? [Buffer.concat(messages, bytes)] : messages;
}

function ifDone(onSent: () => void): (error?: Error | null) => void {
  return (error) => {
    if (error === undefined || error === null) onSent();
  };
}
