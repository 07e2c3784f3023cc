// One socket to an upstream: connecting, idle in the pool, lent to an exchange, or spliced into a tunnel.
import { type LookupFunction, type Socket, connect as connectTcp, isIP } from "node:net";
import {
  type ConnectionOptions,
  type SecureContext,
  checkServerIdentity,
  connect as connectTls,
  createSecureContext,
} from "node:tls";
import { isDeepStrictEqual } from "node:util";

import type { Engine } from "../engine/engine.ts";
import { ResponseParser } from "../parse/index.ts";
import type {
  UpstreamAddress,
  UpstreamPoolOptions,
  UpstreamSocket,
  UpstreamStream,
  UpstreamTls,
} from "../contract/upstream.ts";

/** Callbacks of a connection to its current user. */
export interface UpstreamUser {
  /** Received `bytes[0, length)`, which are valid only during the call unless `connection.readsKept`. */
  onUpstreamBytes(bytes: Buffer, length: number): void;
  /** The upstream sent its FIN. */
  onUpstreamEnd(): void;
  /** The socket has closed. Called once, also after `destroy`, unless the user has released it. */
  onUpstreamClosed(code: string): void;
  /** The socket's write buffer has drained. */
  onUpstreamDrain(): void;
}

/** Callbacks of a connection to its pool. */
export interface ConnectionOwner {
  onConnected(connection: UpstreamConnection): void;
  onConnectFailed(connection: UpstreamConnection, code: string, message: string): void;
  /** The socket is closed or unusable: remove it from all lists. */
  onLost(connection: UpstreamConnection): void;
}

interface PreparedUpstreamTls {
  readonly tls: UpstreamTls;
  readonly context: SecureContext;
}

/** Transport of the connections of a pool. */
export interface UpstreamTransport {
  /** Null without TLS. */
  readonly secure: PreparedUpstreamTls | null;
  readonly openStream: UpstreamPoolOptions["openStream"];
  readonly lookup: UpstreamPoolOptions["lookup"];
}

/** Prepares the transport of a pool. Throws if the TLS material is invalid. */
export function prepareTransport({
  tls,
  openStream,
  lookup,
}: UpstreamPoolOptions): UpstreamTransport {
  if (tls === undefined) return { secure: null, openStream, lookup };
  const { ca, cert, key } = tls;
  const context = createSecureContext({
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  });
  return { secure: { tls, context }, openStream, lookup };
}

type SocketAddress = UpstreamAddress & { readonly lookup?: LookupFunction };

/** Used by a connection whose pool's owner had no stream for it. */
const CLOSED_STREAM: UpstreamStream = {
  writableLength: 0,
  writableNeedDrain: false,
  write: () => true,
  end: () => {},
  destroy: () => {},
  destroySoon: () => {},
  pause: () => {},
  resume: () => {},
  keepReads: () => {},
};

/** Kept bytes below this size do not hold a whole read buffer. */
const COPIED_BYTES_MAX = 16_384;

export class UpstreamConnection {
  readonly parser: ResponseParser;
  /** Current user; null while connecting or idle. */
  user: UpstreamUser | null = null;
  /** Number of requests sent on it. */
  requests = 0;
  /** It has been idle: the upstream may have closed it, and its FIN may not have been read yet. */
  wasIdle = false;
  /** Start of the idle time, or deadline of the connection attempt. */
  sinceMs = 0;
  /** Position in the pool's list of all connections. */
  slot = -1;
  connected = false;
  /** The upstream has closed it or it failed: it must not be used again. */
  dead = false;
  /** True if the user may keep received chunks (TLS, streams); otherwise the next read overwrites them. */
  readonly readsKept: boolean;
  readonly socket: UpstreamSocket;
  /** The stream of the pool's owner, null for a socket. */
  readonly stream: UpstreamStream | null;
  /** The upstream has moved to other addresses: no further request uses this connection. */
  isOutdated = false;

  readonly #address: UpstreamAddress;
  readonly #engine: Engine;
  readonly #owner: ConnectionOwner;
  /** Its own read buffer while the current response needs one. */
  #ownBuffer: Buffer | null = null;
  /** Memory of the user for the next read. */
  #userBuffer: Buffer | null = null;
  #errorCode = "";
  #errorMessage = "";

  constructor(
    engine: Engine,
    owner: ConnectionOwner,
    address: UpstreamAddress,
    { secure, openStream, lookup }: UpstreamTransport,
    headBytesMax: number,
  ) {
    this.#engine = engine;
    this.#owner = owner;
    this.#address = address;
    engine.countUpstream();
    this.parser = new ResponseParser({ headBytesMax });
    this.readsKept = secure !== null || openStream !== undefined;
    this.stream = openStream === undefined ? null : this.#openStream(openStream);
    this.socket =
      this.stream ??
      this.#openSocket(lookup === undefined ? address : { ...address, lookup }, secure);
  }

  /** The response continues after this read: further reads use the connection's own buffer. */
  ownReads(): void {
    if (this.#ownBuffer === null && !this.readsKept)
      this.#ownBuffer = this.#engine.takeReadBuffer();
  }

  /**
   * The buffer of the last read is still in use: further reads use another one.
   */
  abandonReads(): void {
    if (this.#ownBuffer !== null) this.#ownBuffer = this.#engine.takeReadBuffer();
    else this.stream?.keepReads();
  }

  /** The response is complete; its own buffer can be released. */
  shareReads(isFree: boolean): void {
    if (this.#ownBuffer === null) return;
    if (isFree) this.#engine.giveReadBuffer(this.#ownBuffer);
    this.#ownBuffer = null;
  }

  /** Further reads, as long as this is not changed, fill the start of `target`. A hint: TLS and streams have memory of their own. */
  readInto(target: Buffer | null): void {
    this.#userBuffer = target;
  }

  /** Bytes of the current `onUpstreamBytes` that stay valid, and are copied only if they have to be. */
  keepBytes(bytes: Buffer, start: number, end: number): Buffer {
    if (this.readsKept) return bytes.subarray(start, end);
    const isShared = bytes.buffer === this.#engine.sharedReadBuffer.buffer;
    if (isShared || end - start < COPIED_BYTES_MAX) {
      this.ownReads();
      return Buffer.from(bytes.subarray(start, end));
    }
    this.abandonReads();
    return bytes.subarray(start, end);
  }

  /** Whether the connection keeps the process alive. */
  holdProcess(isHeld: boolean): void {
    if (this.stream !== null) return;
    const socket = this.socket as Socket;
    if (isHeld) socket.ref();
    else socket.unref();
  }

  /** True if reads use its own buffer, or a new one each. */
  get ownsReads(): boolean {
    return this.readsKept || this.#ownBuffer !== null;
  }

  /** Checks whether the upstream is still at this connection's address. */
  checkAddress(addresses: readonly UpstreamAddress[]): void {
    this.isOutdated = !addresses.some((address) => isDeepStrictEqual(address, this.#address));
  }

  destroy(): void {
    this.dead = true;
    this.socket.destroy();
  }

  /** Reports that a stream was opened or not; sockets report themselves. */
  reportStream(): void {
    if (this.dead) {
      this.#onClose();
      return;
    }
    this.connected = true;
    this.#owner.onConnected(this);
  }

  #openStream(openStream: NonNullable<UpstreamPoolOptions["openStream"]>): UpstreamStream {
    const stream = openStream({
      onBytes: (bytes) => this.#onBytes(bytes, bytes.length),
      onEnd: () => this.#onEnd(),
      onDrain: () => this.user?.onUpstreamDrain(),
      onClose: (code) => {
        this.#errorCode = code;
        this.#onClose();
      },
    });
    if (stream !== null) return stream;
    this.dead = true;
    return CLOSED_STREAM;
  }

  #openSocket(address: SocketAddress, secure: PreparedUpstreamTls | null): Socket {
    const socket = secure === null ? this.#openPlain(address) : this.#openTls(address, secure);
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.dead = true;
      this.#errorCode = error.code ?? "ERR_SOCKET";
      this.#errorMessage = error.message;
    });
    socket.on("end", () => this.#onEnd());
    socket.on("close", () => {
      this.#onClose();
    });
    socket.on("drain", () => {
      this.user?.onUpstreamDrain();
    });
    socket.on(secure === null ? "connect" : "secureConnect", () => {
      this.connected = true;
      this.#owner.onConnected(this);
    });
    return socket;
  }

  #openPlain(address: SocketAddress): Socket {
    return connectTcp({
      ...address,
      noDelay: true,
      allowHalfOpen: true,
      onread: {
        buffer: () => this.#userBuffer ?? this.#ownBuffer ?? this.#engine.sharedReadBuffer,
        callback: (length, bytes) => {
          this.#onBytes(bytes as Buffer, length);
          return true;
        },
      },
    });
  }

  #openTls(address: SocketAddress, secure: PreparedUpstreamTls): Socket {
    const { tls, context } = secure;
    const options: ConnectionOptions & { allowHalfOpen: boolean } = {
      ...address,
      allowHalfOpen: true,
      secureContext: context,
      rejectUnauthorized: tls.verify ?? true,
      ALPNProtocols: ["http/1.1"],
      checkServerIdentity: (_host, certificate) => checkServerIdentity(tls.serverName, certificate),
    };
    // An IP address must not be sent as SNI (RFC 6066 §3), but the certificate must contain it.
    if (isIP(tls.serverName) === 0) options.servername = tls.serverName;
    const socket = connectTls(options);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      this.#onBytes(bytes, bytes.length);
    });
    return socket;
  }

  #onEnd(): void {
    this.dead = true;
    if (this.user !== null) this.user.onUpstreamEnd();
    else this.socket.destroy();
  }

  #onBytes(bytes: Buffer, length: number): void {
    if (this.user !== null) this.user.onUpstreamBytes(bytes, length);
    // Unsolicited bytes: the connection must not be reused.
    else this.destroy();
  }

  #onClose(): void {
    this.dead = true;
    this.#engine.upstreamsOpen--;
    const { user } = this;
    this.user = null;
    this.#ownBuffer = null;
    this.#userBuffer = null;
    if (!this.connected) {
      this.#owner.onConnectFailed(this, this.#errorCode || "ECONNRESET", this.#errorMessage);
      return;
    }
    this.#owner.onLost(this);
    user?.onUpstreamClosed(this.#errorCode);
  }
}
