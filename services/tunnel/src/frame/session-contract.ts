// Options and events of a session.
import type { Socket } from "node:net";
import type { FrameTypeId } from "./format.ts";
import type { ReceiveBudget } from "./receive-budget.ts";
import type { Stream } from "./stream.ts";

/** Events of a session for its owner. */
export interface SessionListener {
  /** HELLO (relay), WELCOME and EVENT (client): JSON. */
  onMessage(type: FrameTypeId, payload: Buffer): void;
  /** Client: the relay opened a stream to one of the tunnels. The listener is set here. */
  onOpen(stream: Stream, tunnel: number, peer: string): void;
  /** The peer opens and accepts no more streams. */
  onGoAway(code: number, reason: string): void;
  /** The session has ended, once; its streams have been reset. */
  onClose(end: SessionEnd): void;
}

/** Why a session ended: `code` is that of the GOAWAY that was sent or received, null if the connection was just lost. */
export interface SessionEnd {
  readonly code: number | null;
  readonly reason: string;
}

/** Options of {@link Session}. */
export interface SessionOptions {
  /** The socket after the WebSocket handshake. */
  socket: Socket;
  role: "relay" | "client";
  listener: SessionListener;
  budget: ReceiveBudget;
  /** Most streams at the same time. */
  streamsMax: number;
  /** The connection is encrypted or does not leave the machine: masking adds nothing, so the key is zero. */
  isPrivate: boolean;
  /** Received bytes after the handshake. */
  rest: Buffer;
}
