// What an upstream pool is given and what it offers.
import type { Engine } from "../engine/engine.ts";

/** Where an upstream listens; names are resolved by the caller. */
export type UpstreamAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string };

/** TLS towards an upstream. */
export interface UpstreamTls {
  /** SNI and the name that the certificate must carry; an IP address is checked, but not sent as SNI. */
  serverName: string;
  /** PEM roots instead of the system's. */
  ca?: string | Buffer;
  /** PEM client certificate chain and key (mTLS). */
  cert?: string | Buffer;
  key?: string | Buffer;
  /** False accepts any certificate; default true. */
  verify?: boolean;
}

/** Bounds and waits of a pool; times in milliseconds, compared once per sweep. */
export interface UpstreamPoolOptions {
  engine: Engine;
  /** Tried in turn on a failed connection; at most 16 are used. */
  addresses: readonly UpstreamAddress[];
  tls?: UpstreamTls;
  /** Open connections, tunnels included; default 1 024. */
  connectionsMax?: number;
  /** Idle connections kept; default 256. */
  idleMax?: number;
  /** How long an idle connection is kept; default 55 000. */
  idleTimeoutMs?: number;
  /** Requests that may wait for a connection; default 1 024. */
  waitingMax?: number;
  /** How long one may wait; default 5 000. */
  waitTimeoutMs?: number;
  /** TCP connect and TLS handshake, over all addresses; default 5 000. */
  connectTimeoutMs?: number;
  /** Requests on one connection before it is closed; default unlimited (0). */
  requestsPerConnectionMax?: number;
  /** Bytes of a response head; default 65 536. */
  headBytesMax?: number;
}

/** Sockets and waiters of a pool at this moment. */
export interface UpstreamCounts {
  /** All sockets: connecting, idle and in use. */
  open: number;
  connecting: number;
  idle: number;
  waiting: number;
}

/** Pooled keep-alive connections to one upstream (one address set, SNI, CA, client certificate and protocol). */
export interface UpstreamPool {
  readonly counts: UpstreamCounts;
  /** For the owner: not read by the engine. */
  label: string;
  /** Replaces the addresses. Connections to others take no new request: they close when idle, or after their answer. */
  setAddresses(addresses: readonly UpstreamAddress[]): void;
  /** Closes idle connections; each in use is closed after its answer; new requests are refused (`pool-closed`). Resolves when none is left. */
  drain(deadlineMs: number): Promise<void>;
  /** Destroys everything at once. */
  close(): void;
}
