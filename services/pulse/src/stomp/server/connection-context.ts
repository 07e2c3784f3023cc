// Limits, parts and callbacks shared by all connections of a STOMP server.
import type { RevocableToken } from "@platform/kernel/identity";
import type { ByteBudget } from "@platform/kernel/sockets";
import type { Transport } from "../../connection/transport.ts";
import type { UserConnections } from "../../connection/user-connections.ts";
import type { Principal } from "../../user/principal.ts";
import type { FrameLimits } from "../frame/frame-reader.ts";
import type { StompErrorKind } from "../frame/stomp-error.ts";
import type { MessageEncoder } from "../message-form.ts";
import type { SessionParts } from "../session.ts";

/** Why the server closed a connection. */
interface StompFault {
  kind: StompErrorKind;
  remoteAddress: string;
  reason: string;
  error?: unknown;
}

/** Shared by all connections. */
export interface ConnectionContext {
  parts: SessionParts;
  encoder: MessageEncoder;
  frameLimits: FrameLimits;
  /** Large frames being received or handled. */
  frameBudget: ByteBudget;
  users: UserConnections;
  /** A CONNECT must have arrived after this time, in ms. */
  connectTimeoutMs: number;
  /** Connections without heart-beats and subscriptions are closed after this time without a frame, in ms. */
  idleTimeoutMs: number;
  /** Authenticates a client; undefined if it is refused. */
  authenticate: (
    transport: Transport,
    login: string | undefined,
    passcode: string | undefined,
  ) => Promise<Principal | undefined>;
  followToken(token: RevocableToken, end: () => void): () => void;
  onFrame(command: string): void;
  onThrottled(): void;
  onFault(fault: StompFault): void;
}
