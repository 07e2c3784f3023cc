// One socket to an upstream: connecting, idle in the pool, lent to an exchange, or spliced into a tunnel.
import { type Socket, connect as connectTcp, isIP } from "node:net";
import {
  type ConnectionOptions,
  type SecureContext,
  checkServerIdentity,
  connect as connectTls,
} from "node:tls";
import { isDeepStrictEqual } from "node:util";

import type { Engine } from "../engine/engine.ts";
import { ResponseParser } from "../parse/index.ts";
import type { UpstreamAddress, UpstreamTls } from "../contract/upstream.ts";

/** What a lent connection tells the one that it is lent to. */
export interface UpstreamUser {
  /** Bytes came: `bytes[0, length)`. Valid inside the call only, unless `connection.readsKept`. */
  onUpstreamBytes(bytes: Buffer, length: number): void;
  /** The upstream sent its FIN. */
  onUpstreamEnd(): void;
  /** The socket is gone. Called once, also after `destroy`, unless the user let go before. */
  onUpstreamClosed(code: string): void;
  /** What `write` held back has been taken by the system. */
  onUpstreamDrain(): void;
}

/** What a connection tells its pool. */
export interface ConnectionOwner {
  onConnected(connection: UpstreamConnection): void;
  onConnectFailed(connection: UpstreamConnection, code: string, message: string): void;
  /** The socket is gone or useless: remove it from every list. */
  onLost(connection: UpstreamConnection): void;
}

/** TLS of a pool, made ready once. */
export interface PreparedUpstreamTls {
  readonly tls: UpstreamTls;
  readonly context: SecureContext;
}

export class UpstreamConnection {
  readonly parser: ResponseParser;
  /** Whom it is lent to; null while connecting or idle. */
  user: UpstreamUser | null = null;
  /** Requests begun on it. */
  requests = 0;
  /** It has been idle: the upstream may have closed it and the FIN not been read yet. */
  wasIdle = false;
  /** Since when it is idle, or when connecting must be done. */
  sinceMs = 0;
  /** Position in the pool's list of all connections. */
  slot = -1;
  connected = false;
  /** The upstream closed, or the socket broke: it must not be used again. */
  dead = false;
  /** Whether chunks handed to the user may be kept (TLS), or stand in a buffer that the next read overwrites. */
  readonly readsKept: boolean;
  readonly socket: Socket;
  /** The upstream is no longer at this address: no other request goes there. */
  isOutdated = false;

  readonly #address: UpstreamAddress;
  readonly #engine: Engine;
  readonly #owner: ConnectionOwner;
  /** A read buffer of its own while the current answer needs one. */
  #ownBuffer: Buffer | null = null;
  #errorCode = "";
  #errorMessage = "";

  constructor(
    engine: Engine,
    owner: ConnectionOwner,
    address: UpstreamAddress,
    secure: PreparedUpstreamTls | null,
    headBytesMax: number,
  ) {
    this.#engine = engine;
    this.#owner = owner;
    this.#address = address;
    engine.countUpstream();
    this.parser = new ResponseParser({ headBytesMax });
    this.readsKept = secure !== null;
    this.socket = secure === null ? this.#openPlain(address) : this.#openTls(address, secure);
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.dead = true;
      this.#errorCode = error.code ?? "ERR_SOCKET";
      this.#errorMessage = error.message;
    });
    this.socket.on("end", () => {
      this.dead = true;
      if (this.user !== null) this.user.onUpstreamEnd();
      else this.socket.destroy();
    });
    this.socket.on("close", () => {
      this.#onClose();
    });
    this.socket.on("drain", () => {
      this.user?.onUpstreamDrain();
    });
    this.socket.on(secure === null ? "connect" : "secureConnect", () => {
      this.connected = true;
      this.#owner.onConnected(this);
    });
  }

  /** The answer goes on beyond this read: from the next read on, bytes are put into a buffer of its own. */
  ownReads(): void {
    if (this.#ownBuffer === null && !this.readsKept)
      this.#ownBuffer = this.#engine.takeReadBuffer();
  }

  /**
   * The buffer of the last read is still needed by someone else: reads go on in another one.
   */
  abandonReads(): void {
    if (this.#ownBuffer !== null) this.#ownBuffer = this.#engine.takeReadBuffer();
  }

  /** The answer is over and nothing refers to the buffer of its own any more. */
  shareReads(isFree: boolean): void {
    if (this.#ownBuffer === null) return;
    if (isFree) this.#engine.giveReadBuffer(this.#ownBuffer);
    this.#ownBuffer = null;
  }

  /** Whether reads go to a buffer of its own, or each to a new one. */
  get ownsReads(): boolean {
    return this.readsKept || this.#ownBuffer !== null;
  }

  /** Notes whether the upstream is still at this connection's address. */
  checkAddress(addresses: readonly UpstreamAddress[]): void {
    this.isOutdated = !addresses.some((address) => isDeepStrictEqual(address, this.#address));
  }

  destroy(): void {
    this.dead = true;
    this.socket.destroy();
  }

  #openPlain(address: UpstreamAddress): Socket {
    return connectTcp({
      ...address,
      noDelay: true,
      allowHalfOpen: true,
      onread: {
        buffer: () => this.#ownBuffer ?? this.#engine.sharedReadBuffer,
        callback: (length, bytes) => {
          this.#onBytes(bytes as Buffer, length);
          return true;
        },
      },
    });
  }

  #openTls(address: UpstreamAddress, secure: PreparedUpstreamTls): Socket {
    const { tls, context } = secure;
    const options: ConnectionOptions & { allowHalfOpen: boolean } = {
      ...address,
      allowHalfOpen: true,
      secureContext: context,
      rejectUnauthorized: tls.verify ?? true,
      ALPNProtocols: ["http/1.1"],
      checkServerIdentity: (_host, certificate) => checkServerIdentity(tls.serverName, certificate),
    };
    // An address must not be sent as SNI (RFC 6066 §3), yet the certificate must carry it.
    if (isIP(tls.serverName) === 0) options.servername = tls.serverName;
    const socket = connectTls(options);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      this.#onBytes(bytes, bytes.length);
    });
    return socket;
  }

  #onBytes(bytes: Buffer, length: number): void {
    if (this.user !== null) this.user.onUpstreamBytes(bytes, length);
    // Bytes that nobody asked for: the connection cannot be trusted with another request.
    else this.destroy();
  }

  #onClose(): void {
    this.dead = true;
    this.#engine.upstreamsOpen--;
    const { user } = this;
    this.user = null;
    this.#ownBuffer = null;
    if (!this.connected) {
      this.#owner.onConnectFailed(this, this.#errorCode || "ECONNRESET", this.#errorMessage);
      return;
    }
    this.#owner.onLost(this);
    user?.onUpstreamClosed(this.#errorCode);
  }
}
