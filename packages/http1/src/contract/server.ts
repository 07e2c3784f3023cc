// What a server is given and what it offers.
import type { TLSSocketOptions } from "node:tls";

import type { PaceBound } from "@platform/kernel/sockets";

import type { Engine } from "../engine/engine.ts";
import type { Answer } from "../write/index.ts";
import type { Exchange, Handler } from "./exchange.ts";
import type { Refused } from "../write/refused.ts";

export type { Refused } from "../write/refused.ts";

/** Bounds of a server; every one has a default. */
export interface ServerLimits {
  /** Bytes of request line and fields; default 32 768 (431, or 414 if the target alone is longer). */
  headBytesMax?: number;
  /** Fields of a request; default 128 (431). */
  fieldsMax?: number;
  /** Bytes of the request target; default 8 192 (414). */
  targetBytesMax?: number;
  /** Bytes of a request body unless the handler sets another; default 10 485 760 (413). */
  bodyBytesMax?: number;
  /** Connections at a time, TLS handshakes included; default 65 536. One more is closed at once (`too-many-connections`). */
  connectionsMax?: number;
  /**
   * Connections at a time of one IPv4 address or one IPv6 network of 64 bits; default half of `connectionsMax`. One more is
   * closed at once (`too-many-of-address`). Unix sockets are exempt.
   */
  connectionsPerAddressMax?: number;
  /** Requests on one connection before it is closed; default 1 000 000. */
  requestsPerConnectionMax?: number;
  /** Bytes read ahead on one connection while an answer is pending; default 65 536. Reading pauses above it. */
  readAheadBytesMax?: number;
}

/** Waits of a server in milliseconds, compared once per sweep; 0 switches one off. */
export interface ServerTimeouts {
  /** From the first byte of a request (or the connection) to the end of its head; default 30 000 (408). */
  headMs?: number;
  /** Between two pieces of a request body; default 60 000 (408). */
  bodyIdleMs?: number;
  /** Between two requests on a connection; default 75 000. */
  keepAliveMs?: number;
  /** How long the client may read nothing while bytes wait for it; default 60 000. */
  writeStallMs?: number;
  /** TLS handshake; default 10 000. */
  handshakeMs?: number;
  /** How long a client that has half-closed may wait for its answer to go on; default 1 000. */
  halfCloseMs?: number;
  /** How long an early answer lingers while the client still sends its body; default 5 000. */
  lingerMs?: number;
}

/** The least that clients must move, judged once per sweep over the time that they kept the server waiting. */
export interface ServerPaces {
  /** Bytes of a request body while the handler takes them; default 7 680 in 30 000 ms (408). */
  requestBody?: PaceBound;
  /**
   * Bytes of an answer or tunnel while some wait for the client; default 15 360 in 60 000 ms. Slower clients are
   * disconnected (`slow-reader`). The system takes bytes in lumps of up to a third of its send buffer: progress shows no finer.
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

/** TLS of a listener: replaced as a whole by {@link Server.setTls}, open connections are left alone. */
export interface ServerTls {
  /** Shown to clients whose name matches nothing or that send none; null refuses them. */
  fallback: TlsIdentity | null;
  /** By lower-case name; `*.example.org` covers one label. */
  names?: ReadonlyMap<string, TlsIdentity>;
  /** mTLS: `require` refuses clients without a certificate signed by `ca`, `request` lets them in without identity. Set when the server is created. */
  clientCertificates?: { mode: "request" | "require"; ca: string | Buffer };
  minVersion?: NonNullable<TLSSocketOptions["minVersion"]>;
}

/** Where a server listens. */
export interface ListenOptions {
  /** Address to bind; default `::` (all). */
  host?: string;
  /** 0 takes a free one. */
  port?: number;
  /** Unix socket instead of host and port. */
  path?: string;
  /** Lets several threads share the port. */
  reusePort?: boolean;
  /** Not shared with cluster workers; default true. */
  exclusive?: boolean;
  /** Length of the accept queue; default 4 096. */
  backlog?: number;
}

/** A request that never became an exchange, or a connection that failed. */
export interface ServerFault {
  kind:
    | "malformed-request"
    | "head-timeout"
    /** A request body that came below the minimum pace. */
    | "slow-body"
    /** A client was disconnected because it did not read: `code` is `stalled`, `slow` or `over-budget`. */
    | "slow-reader"
    | "tls-handshake"
    | "too-many-connections"
    | "too-many-of-address"
    | "socket";
  /** Answer that was sent, 0 if none was. */
  status: number;
  /** Stable code of what was wrong. */
  code: string;
  remoteAddress: string;
}

/** Bounds that {@link Server.setBounds} changes. */
export interface ServerBounds {
  limits?: ServerLimits;
  timeouts?: ServerTimeouts;
  paces?: ServerPaces;
}

/** Options of `createServer`. `U` is the handler's per-request record. */
export interface ServerOptions<U> extends ServerBounds {
  handler: Handler<U>;
  engine: Engine;
  /** Makes the record of a new connection's exchanges, once per connection; default undefined. */
  createUserData?: () => U;
  /** Addresses that `connectionsPerAddressMax` does not apply to: proxies that speak for many clients. */
  isProxyAddress?: (address: string) => boolean;
  tls?: ServerTls;
  /**
   * Makes the answer to a request that the engine refuses by itself, in the form that its clients read errors in. `path` is
   * as it was sent, of visible ASCII, `""` where it was not read to its end. Called for each refusal. Null leaves it at the
   * problem document, which is sent as well where this throws, sets a field that is not allowed, or makes a body above 32 KiB.
   */
  composeRefusal?: (refused: Refused, path: string) => Answer | null;
  /** Tells of requests that were refused before the handler saw them, and of handlers that threw. */
  onFault?: (fault: ServerFault) => void;
  /** A handler threw: the engine answers 500 and closes. Without it the error is rethrown. */
  onHandlerError?: (error: unknown, exchange: Exchange<U>) => void;
}

/** Open sockets of a server by what they are doing. */
export interface ServerCounts {
  connections: number;
  /** Connections with a request under way. */
  active: number;
  /** Connections that became tunnels through Upgrade. */
  tunnels: number;
}

/** A listening HTTP/1.1 server. */
export interface Server {
  /** Rejects with the system's error, `EADDRINUSE` and the like. */
  listen(options: ListenOptions): Promise<void>;
  /** What it listens on; null before and after. */
  address(): { host: string; port: number } | { path: string } | null;
  readonly counts: ServerCounts;
  /** Replaces certificates for new handshakes. Throws if one does not load: then nothing has changed. */
  setTls(tls: ServerTls): void;
  /**
   * Replaces all bounds; omitted ones get their default. Bounds of heads apply to new connections, `handshakeMs` is not
   * changed. Open connections stay, even if there are more than the new bounds allow.
   */
  setBounds(bounds: ServerBounds): void;
  /**
   * Stops accepting, closes idle connections, lets each request under way finish with `Connection: close`, and destroys
   * what is left after `deadlineMs`. Tunnels count as under way. After `streamsMs`, default `deadlineMs`, forwarded event
   * streams and WebSockets are ended in order ({@link Exchange.endStream}). Resolves when no socket is left.
   */
  drain(deadlineMs: number, streamsMs?: number): Promise<void>;
  /** Destroys everything at once. */
  close(): Promise<void>;
}
