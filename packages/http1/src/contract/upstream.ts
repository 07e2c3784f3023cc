// Pools of upstream connections.
import type { LookupFunction } from "node:net";
import type { Engine } from "../engine/engine.ts";

/** Address of an upstream; the caller resolves names. */
export type UpstreamAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string };

/** TLS settings for an upstream. */
export interface UpstreamTls {
  /** SNI and required name of the certificate; an IP address is verified but not sent as SNI. */
  serverName: string;
  /** PEM roots instead of the system's. */
  ca?: string | Buffer;
  /** PEM client certificate chain and key (mTLS). */
  cert?: string | Buffer;
  key?: string | Buffer;
  /** False accepts any certificate; default true. */
  verify?: boolean;
}

/** A byte stream to an upstream; the parts of `net.Socket` that the engine uses. */
export interface UpstreamSocket {
  /** Bytes that have not been sent. */
  readonly writableLength: number;
  /** True after `write` returned false, until `onDrain`. */
  readonly writableNeedDrain: boolean;
  write(bytes: Uint8Array): boolean;
  end(): void;
  end(bytes: Uint8Array): void;
  destroy(): void;
  /** Destroys after the written bytes. */
  destroySoon(): void;
  pause(): void;
  resume(): void;
}

/** A stream of the pool's owner, used instead of a TCP connection. */
export interface UpstreamStream extends UpstreamSocket {
  /** Bytes of the current `onBytes` call stay referenced: their buffer must not be reused. */
  keepReads(): void;
}

/** Events of an {@link UpstreamStream}, called asynchronously. */
export interface UpstreamStreamEvents {
  /** Received bytes, which may be kept. */
  onBytes(bytes: Buffer): void;
  onEnd(): void;
  onDrain(): void;
  /** The stream is closed, with an error's code or "". Called once, also after `destroy`. */
  onClose(code: string): void;
}

/** Limits and timeouts of a pool; times are in milliseconds and checked once per sweep. */
export interface UpstreamPoolOptions {
  engine: Engine;
  /** Tried in turn until a connection succeeds; at most 16 are used. */
  addresses: readonly UpstreamAddress[];
  /**
   * Opens a stream instead of a TCP connection to the addresses, which are then only names. It accepts bytes immediately.
   * Null if no stream is available (`connect-failed`).
   */
  openStream?: (events: UpstreamStreamEvents) => UpstreamStream | null;
  tls?: UpstreamTls;
  /** Resolves the hosts of addresses that are names; otherwise the caller has resolved them. */
  lookup?: LookupFunction | undefined;
  /** Maximum open connections, including tunnels; default 1 024. */
  connectionsMax?: number;
  /** Maximum idle connections; default 256. */
  idleMax?: number;
  /** Timeout of idle connections; default 55 000. */
  idleTimeoutMs?: number;
  /** Maximum requests that wait for a connection; default 1 024. */
  waitingMax?: number;
  /** Timeout of waiting requests; default 5 000. */
  waitTimeoutMs?: number;
  /** Timeout of TCP connect and TLS handshake for all addresses together; default 5 000. */
  connectTimeoutMs?: number;
  /** Requests on one connection before it is closed; default unlimited (0). */
  requestsPerConnectionMax?: number;
  /** Maximum bytes of a response head; default 65 536. */
  headBytesMax?: number;
}

/** Current sockets and waiting requests of a pool. */
export interface UpstreamCounts {
  /** All sockets: connecting, idle and in use. */
  open: number;
  connecting: number;
  idle: number;
  waiting: number;
}

/** Keep-alive connections to one upstream: one set of addresses, SNI, CA, client certificate and protocol. */
export interface UpstreamPool {
  readonly counts: UpstreamCounts;
  /** For the owner; the engine does not read it. */
  label: string;
  /** Replaces the addresses. Connections to other addresses close when idle or after their response. */
  setAddresses(addresses: readonly UpstreamAddress[]): void;
  /** Closes idle connections, and used ones after their response; refuses new requests (`pool-closed`). Resolves when all are closed. */
  drain(deadlineMs: number): Promise<void>;
  /** Destroys all connections immediately. */
  close(): void;
}
