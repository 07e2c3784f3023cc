// A listening server: accepts, counts, sweeps and drains connections.
import {
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
  createServer as createTcpServer,
} from "node:net";

import {
  ConnectionBounds,
  type ConnectionBoundsOptions,
  type PaceBound,
  type ReadShortener,
  createReadShortener,
} from "@platform/kernel/sockets";

import type { Engine, Swept } from "../engine/engine.ts";
import type { RequestHead, RequestLimits } from "../parse/index.ts";
import { TlsListener } from "../tls/listener.ts";
import { type PreparedAnswer, prepareAnswer } from "../write/index.ts";
import { ClientConnection } from "./connection.ts";
import type { ConnectionHost, HostedConnection } from "./connection-host.ts";
import { DetachedSocket } from "./detached-socket.ts";
import type {
  ListenOptions,
  Server,
  ServerBounds,
  ServerCounts,
  ServerFault,
  ServerOptions,
  ServerTls,
} from "../contract/server.ts";
import type { Exchange } from "../contract/exchange.ts";
import { prepareRefusal } from "../write/problem.ts";
import type { Refused } from "../write/refused.ts";

const BACKLOG = 4_096;
const REFUSAL_BODY_BYTES_MAX = 32_768;
const REQUEST_BODY_PACE: PaceBound = { bytesMin: 7_680, windowMs: 30_000 };
const ANSWER_PACE: PaceBound = { bytesMin: 15_360, windowMs: 60_000 };

/** Creates a server; `listen` starts it. Throws if the TLS material is invalid. */
export function createServer<U = undefined>(options: ServerOptions<U>): Server<U> {
  return new Http1Server(options);
}

class Http1Server<U> implements Server<U>, ConnectionHost<U>, Swept {
  readonly engine: Engine;
  readonly shortenReads: ReadShortener;
  parserLimits: RequestLimits = {};
  bodyBytesMax = 0;
  requestsPerConnectionMax = 0;
  readAheadBytesMax = 0;
  headMs = 0;
  bodyIdleMs = 0;
  keepAliveMs = 0;
  writeStallMs = 0;
  requestBodyPace: PaceBound = REQUEST_BODY_PACE;
  answerPace: PaceBound = ANSWER_PACE;
  lingerMs = 0;
  halfCloseMs = 0;
  readonly firstRequestMs = 2_000;
  draining = false;
  endsStreams = false;
  active = 0;
  tunnels = 0;
  readonly handle: (exchange: Exchange<U>) => void;

  readonly #options: ServerOptions<U>;
  readonly #bounds: ConnectionBounds;
  readonly #connections = new Set<HostedConnection>();
  readonly #tls: TlsListener | null;
  readonly #listener: TcpServer;
  #onEmpty: (() => void)[] = [];

  constructor(options: ServerOptions<U>) {
    this.#options = options;
    this.engine = options.engine;
    this.handle = options.handler;
    this.#bounds = new ConnectionBounds({
      ...readConnectionBounds(options),
      isExempt: options.isProxyAddress,
    });
    this.setBounds(options);
    this.shortenReads = createReadShortener(this.engine.sharedReadBuffer);
    const onSocket = (socket: Socket): void => {
      this.#accept(socket);
    };
    const socketOptions = { allowHalfOpen: true, noDelay: true };
    if (options.tls === undefined) {
      this.#tls = null;
      this.#listener = createTcpServer(socketOptions, onSocket);
    } else {
      this.#tls = new TlsListener(
        options.tls,
        options.timeouts?.handshakeMs ?? 10_000,
        onSocket,
        (fault) => {
          this.onFault(fault);
        },
        () => {
          this.#settleEmpty();
        },
      );
      this.#listener = this.#tls.listener;
      this.#listener.prependListener("connection", (socket: Socket) => {
        this.#admit(socket);
      });
    }
    this.engine.add(this);
  }

  get counts(): ServerCounts {
    return { connections: this.#connections.size, active: this.active, tunnels: this.tunnels };
  }

  listen(options: ListenOptions): Promise<void> {
    const listener = this.#listener;
    return new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(
        options.path === undefined
          ? {
              port: options.port ?? 0,
              ...(options.host === undefined ? {} : { host: options.host }),
              ...(options.reusePort === undefined ? {} : { reusePort: options.reusePort }),
              exclusive: options.exclusive ?? true,
              backlog: options.backlog ?? BACKLOG,
            }
          : { path: options.path, backlog: options.backlog ?? BACKLOG },
        () => {
          listener.off("error", reject);
          // Errors of accept (EMFILE) do not stop the listener: they are reported, not thrown.
          listener.on("error", (error: NodeJS.ErrnoException) => {
            this.onFault({ kind: "socket", status: 0, code: error.code ?? "", remoteAddress: "" });
          });
          resolve();
        },
      );
    });
  }

  address(): { host: string; port: number } | { path: string } | null {
    const address: AddressInfo | string | null = this.#listener.address();
    if (address === null) return null;
    if (typeof address === "string") return { path: address };
    return { host: address.address, port: address.port };
  }

  setTls(tls: ServerTls): void {
    if (this.#tls === null) throw new Error("This server was created without TLS");
    this.#tls.replace(tls);
  }

  setBounds(bounds: ServerBounds): void {
    const { limits = {}, timeouts = {}, paces = {} } = bounds;
    this.parserLimits = {
      ...(limits.headBytesMax === undefined ? {} : { headBytesMax: limits.headBytesMax }),
      ...(limits.fieldsMax === undefined ? {} : { fieldsMax: limits.fieldsMax }),
      ...(limits.targetBytesMax === undefined ? {} : { targetBytesMax: limits.targetBytesMax }),
    };
    this.bodyBytesMax = limits.bodyBytesMax ?? 10_485_760;
    this.requestsPerConnectionMax = limits.requestsPerConnectionMax ?? 1_000_000;
    this.readAheadBytesMax = limits.readAheadBytesMax ?? 65_536;
    this.#bounds.resize(readConnectionBounds(bounds));
    this.headMs = timeouts.headMs ?? 30_000;
    this.bodyIdleMs = timeouts.bodyIdleMs ?? 60_000;
    this.keepAliveMs = timeouts.keepAliveMs ?? 75_000;
    this.writeStallMs = timeouts.writeStallMs ?? 60_000;
    this.requestBodyPace = paces.requestBody ?? REQUEST_BODY_PACE;
    this.answerPace = paces.answer ?? ANSWER_PACE;
    this.lingerMs = timeouts.lingerMs ?? 5_000;
    this.halfCloseMs = timeouts.halfCloseMs ?? 1_000;
  }

  handleDetached(head: Buffer, userData: U, onClosed: () => void): void {
    // A connection uses nothing of a socket that a stream in memory does not have.
    const socket = new DetachedSocket(head) as unknown as Socket;
    socket.once("close", onClosed);
    this.#connections.add(new ClientConnection(socket, this, userData));
  }

  async drain(deadlineMs: number, streamsMs = deadlineMs, idleMs = 0): Promise<void> {
    this.draining = true;
    if (this.#listener.listening) this.#listener.close();
    const closeIdle = (): void => {
      for (const connection of this.#connections) connection.drain();
    };
    if (idleMs <= 0) closeIdle();
    if (!this.#isEmpty) {
      await new Promise<void>((resolve) => {
        const handshakeTimer = setTimeout(() => this.#tls?.close(), this.firstRequestMs);
        const idleTimer = idleMs > 0 ? setTimeout(closeIdle, idleMs) : undefined;
        const timer = setTimeout(() => {
          this.#tls?.close();
          for (const connection of this.#connections) connection.destroy();
        }, deadlineMs);
        const endStreams = (): void => {
          this.endsStreams = true;
          for (const connection of this.#connections) connection.endStream();
        };
        const streamsTimer =
          streamsMs > 0 ? setTimeout(endStreams, Math.min(streamsMs, deadlineMs)) : undefined;
        this.#onEmpty.push(() => {
          clearTimeout(timer);
          clearTimeout(handshakeTimer);
          clearTimeout(idleTimer);
          clearTimeout(streamsTimer);
          resolve();
        });
        if (streamsMs <= 0) endStreams();
      });
    }
    this.#tls?.close();
    this.engine.remove(this);
  }

  async close(): Promise<void> {
    this.draining = true;
    if (this.#listener.listening) this.#listener.close();
    this.#tls?.close();
    if (!this.#isEmpty) {
      const emptied = new Promise<void>((resolve) => {
        this.#onEmpty.push(resolve);
      });
      for (const connection of this.#connections) connection.destroy();
      await emptied;
    }
    this.engine.remove(this);
  }

  sweep(nowMs: number): void {
    for (const connection of this.#connections) connection.sweep(nowMs);
  }

  prepareRefusal(refused: Refused, head: RequestHead): PreparedAnswer {
    const { composeRefusal } = this.#options;
    if (composeRefusal === undefined) return prepareRefusal(refused);
    try {
      const composed = composeRefusal(refused, head.pathString());
      const answer = composed === null ? null : prepareAnswer(composed);
      if (answer !== null && answer.body.length <= REFUSAL_BODY_BYTES_MAX) return answer;
    } catch {
      // Falls back to the engine's own response.
    }
    return prepareRefusal(refused);
  }

  onHandlerError(error: unknown, exchange: Exchange<U>): void {
    const { onHandlerError } = this.#options;
    if (onHandlerError === undefined) throw error;
    onHandlerError(error, exchange);
  }

  onFault(fault: ServerFault): void {
    this.#options.onFault?.(fault);
  }

  forget(connection: HostedConnection): void {
    this.#connections.delete(connection);
    this.#settleEmpty();
  }

  /** True if no connection is open and none is in its TLS handshake. */
  get #isEmpty(): boolean {
    return this.#connections.size === 0 && (this.#tls?.handshakes ?? 0) === 0;
  }

  #settleEmpty(): void {
    if (!this.#isEmpty) return;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #accept(socket: Socket): void {
    if (this.#tls === null && !this.#admit(socket)) return;
    const { createUserData } = this.#options;
    const userData = createUserData === undefined ? (undefined as U) : createUserData();
    this.#connections.add(new ClientConnection(socket, this, userData));
  }

  /** Counts a connection before its TLS handshake; destroys it if it exceeds a limit. */
  #admit(socket: Socket): boolean {
    const remoteAddress = socket.remoteAddress ?? "";
    const admission = this.#bounds.admit(remoteAddress);
    if (admission === "admitted") {
      socket.once("close", () => {
        this.#bounds.release(remoteAddress);
      });
      return true;
    }
    refuse(socket);
    const kind = admission === "too-many" ? "too-many-connections" : "too-many-of-address";
    this.onFault({ kind, status: 0, code: "", remoteAddress });
    return false;
  }
}

function readConnectionBounds({ limits = {} }: ServerBounds): ConnectionBoundsOptions {
  return {
    connectionsMax: limits.connectionsMax ?? 65_536,
    perAddressMax: limits.connectionsPerAddressMax,
  };
}

function refuse(socket: Socket): void {
  socket.on("error", () => {});
  socket.destroy();
}
