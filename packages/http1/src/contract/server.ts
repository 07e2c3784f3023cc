// Servers: options, limits, faults.
import type { TLSSocketOptions } from "node:tls";

import type { PaceBound } from "@platform/kernel/sockets";

import type { Engine } from "../engine/engine.ts";
import type { Answer } from "../write/index.ts";
import type { Exchange, Handler } from "./exchange.ts";
import type { Refused } from "../write/refused.ts";

export type { Refused } from "../write/refused.ts";

/** Limits of a server; all have defaults. */
export interface ServerLimits {
  /** Maximum bytes of request line and fields; default 32 768 (431, or 414 if the target alone is longer). */
  headBytesMax?: number;
  /** Maximum fields of a request; default 128 (431). */
  fieldsMax?: number;
  /** Maximum bytes of the request target; default 8 192 (414). */
  targetBytesMax?: number;
  /** Maximum bytes of a request body unless the handler changes it; default 10 485 760 (413). */
  bodyBytesMax?: number;
  /** Maximum connections, including TLS handshakes; default 65 536. Others are closed immediately (`too-many-connections`). */
  connectionsMax?: number;
  /**
   * Maximum connections of one IPv4 address or one IPv6 /64 network; default half of `connectionsMax`. Others are closed
   * immediately (`too-many-of-address`). Unix sockets are exempt.
   */
  connectionsPerAddressMax?: number;
  /** Maximum requests on one connection before it is closed; default 1 000 000. */
  requestsPerConnectionMax?: number;
  /** Bytes read ahead on one connection during a request; default 65 536. Reading pauses above it. */
  readAheadBytesMax?: number;
}

/** Timeouts of a server in milliseconds, checked once per sweep; 0 disables a timeout. */
export interface ServerTimeouts {
  /** From the first byte of a request (or the connection) to the end of its head; default 30 000 (408). */
  headMs?: number;
  /** Between two chunks of a request body; default 60 000 (408). */
  bodyIdleMs?: number;
  /** Between two requests on a connection; default 75 000. */
  keepAliveMs?: number;
  /** Time without reads of the client while bytes are buffered for it; default 60 000. */
  writeStallMs?: number;
  /** TLS handshake; default 10 000. */
  handshakeMs?: number;
  /** Time without progress of the response after the client has half-closed; default 1 000. */
  halfCloseMs?: number;
  /** Lingering close after an early response while the client still sends its body; default 5 000. */
  lingerMs?: number;
}

/** Minimum pace of clients, checked once per sweep over the time in which the server waits for them. */
export interface ServerPaces {
  /** Request body bytes while the handler accepts them; default 7 680 in 30 000 ms (408). */
  requestBody?: PaceBound;
  /**
   * Bytes of a response or tunnel while some are buffered for the client; default 15 360 in 60 000 ms. Slower clients are
   * disconnected (`slow-reader`). Progress has the granularity of the system: up to a third of its send buffer.
   */
  answer?: PaceBound;
}

/** Keys, certificates and client verification for one server name. */
export interface TlsIdentity {
  /** PEM chain. */
  cert: string | Buffer;
  /** PEM key. */
  key: string | Buffer;
}

/** Keys of session tickets, of 48 secret bytes each: the name (16), the HMAC key (16) and the AES key (16). */
export interface TicketKeySet {
  current: Uint8Array;
  /** Those before the current ones: sessions with their tickets are resumed, too. */
  previous?: Uint8Array | undefined;
}

/** TLS settings of a listener: {@link Server.setTls} replaces them without affecting open connections. */
export interface ServerTls {
  /** For clients that send an unknown name or no name; null refuses them: an unknown name with the alert `unrecognized_name`. */
  fallback: TlsIdentity | null;
  /** By lower-case name; `*.example.org` covers one label. */
  names?: ReadonlyMap<string, TlsIdentity>;
  /**
   * Certificates of handshakes that offer only `acme-tls/1` (RFC 8737), by lower-case name; such connections are closed after
   * the handshake. Undefined when the server is created: there will be none.
   */
  challenges?: ReadonlyMap<string, TlsIdentity>;
  /** Called with the lower-case name of a handshake that is refused because no certificate fits. */
  onUnknownName?: (name: string) => void;
  /** mTLS: `require` refuses clients without a certificate signed by `ca`, `request` accepts them without identity. Fixed when the server is created. */
  clientCertificates?: { mode: "request" | "require"; ca: string | Buffer };
  minVersion?: NonNullable<TLSSocketOptions["minVersion"]>;
  /**
   * Keys of session tickets: servers with equal ones resume each other's sessions. Undefined when the server is created: it has
   * keys of its own. Without effect on Bun, whose TLS has no such option.
   */
  ticketKeys?: TicketKeySet;
}

/** Address of a listener. */
export interface ListenOptions {
  /** Address to bind; default `::` (all). */
  host?: string;
  /** 0 selects a free port. */
  port?: number;
  /** Unix socket instead of host and port. */
  path?: string;
  /** Allows several threads to share the port. */
  reusePort?: boolean;
  /** Not shared with cluster workers; default true. */
  exclusive?: boolean;
  /** Length of the accept queue; default 4 096. */
  backlog?: number;
}

/** A request that was refused before the handler, or a failed connection. */
export interface ServerFault {
  kind:
    | "malformed-request"
    | "head-timeout"
    /** A request body was slower than the minimum pace. */
    | "slow-body"
    /** A client was disconnected because it did not read: `code` is `stalled`, `slow` or `over-budget`. */
    | "slow-reader"
    | "tls-handshake"
    | "too-many-connections"
    | "too-many-of-address"
    | "socket";
  /** Status of the response, 0 without one. */
  status: number;
  /** Stable code of the fault. */
  code: string;
  remoteAddress: string;
}

/** Settings that {@link Server.setBounds} changes. */
export interface ServerBounds {
  limits?: ServerLimits;
  timeouts?: ServerTimeouts;
  paces?: ServerPaces;
}

/** Options of `createServer`. `U` is the type of the handler's state. */
export interface ServerOptions<U> extends ServerBounds {
  handler: Handler<U>;
  engine: Engine;
  /** Creates the handler's state, once per connection; default undefined. */
  createUserData?: () => U;
  /** Returns true for proxies of many clients, which `connectionsPerAddressMax` does not apply to. */
  isProxyAddress?: (address: string) => boolean;
  tls?: ServerTls;
  /**
   * Creates the response to a request that the engine refuses, in the error format of its clients. `path` is the path as
   * sent, in visible ASCII, or `""` if it was not read to its end. If this returns null, throws, sets an invalid field or
   * creates a body above 32 KiB, a problem document is sent.
   */
  composeRefusal?: (refused: Refused, path: string) => Answer | null;
  /** Called for requests that are refused before the handler, and for failed connections. */
  onFault?: (fault: ServerFault) => void;
  /** Called if a handler throws: the engine responds with 500 and closes. Without this the error is rethrown. */
  onHandlerError?: (error: unknown, exchange: Exchange<U>) => void;
}

/** Open sockets of a server by state. */
export interface ServerCounts {
  connections: number;
  /** Connections with an active request. */
  active: number;
  /** Connections that are tunnels after an Upgrade. */
  tunnels: number;
}

/** A listening HTTP/1.1 server. */
export interface Server<U = unknown> {
  /** Rejects with the system's error, for example `EADDRINUSE`. */
  listen(options: ListenOptions): Promise<void>;
  /** Address of the listener; null if it is not listening. */
  address(): { host: string; port: number } | { path: string } | null;
  readonly counts: ServerCounts;
  /** Replaces the certificates for new handshakes. Throws, without any change, if one is invalid. */
  setTls(tls: ServerTls): void;
  /**
   * Replaces all settings; omitted ones get their default. Limits of heads apply to new connections, `handshakeMs` does not
   * change. Open connections stay open, even above the new limits.
   */
  setBounds(bounds: ServerBounds): void;
  /**
   * Handles a request that no client waits for, and discards its response. `head` is a whole request head without a body,
   * with `Connection: close`; its exchange has no addresses. `onClosed` is called once it has ended, even if its head was
   * refused. Such requests do not count towards the limits of connections: callers bound their number.
   */
  handleDetached(head: Buffer, userData: U, onClosed: () => void): void;
  /**
   * Stops accepting, closes idle connections, lets active requests and tunnels finish with `Connection: close`, and
   * destroys the rest after `deadlineMs`. After `streamsMs`, default `deadlineMs`, forwarded event streams and WebSockets
   * are ended gracefully ({@link Exchange.endStream}). Idle connections are closed after `idleMs`, default 0: requests that
   * are already on their way are answered. New connections have 2 s for their first request. Resolves when all sockets are
   * closed.
   */
  drain(deadlineMs: number, streamsMs?: number, idleMs?: number): Promise<void>;
  /** Destroys all connections immediately. */
  close(): Promise<void>;
}
