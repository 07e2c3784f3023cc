// A listening server: sockets in, connections counted, swept, drained.
import { createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server as TcpServer, Socket } from "node:net";

import { createReadShortener } from "@platform/kernel/sockets";
import type { ReadShortener } from "@platform/kernel/sockets";

import type { Engine, Swept } from "../engine/engine.ts";
import type { RequestHead, RequestLimits } from "../parse/index.ts";
import { TlsListener } from "../tls/listener.ts";
import { prepareAnswer } from "../write/index.ts";
import type { PreparedAnswer } from "../write/index.ts";
import { ClientConnection } from "./connection.ts";
import type { ConnectionHost } from "./connection-host.ts";
import type {
  ListenOptions,
  Server,
  ServerCounts,
  ServerFault,
  ServerOptions,
  ServerTls,
} from "./contract.ts";
import type { Exchange } from "./exchange.ts";
import { prepareRefusal } from "./problem.ts";
import type { Refused } from "./refused.ts";

const BACKLOG = 4_096;
const REFUSAL_BODY_BYTES_MAX = 32_768;

/** Makes a server; `listen` starts it. Throws if the TLS material does not load. */
export function createServer<U = undefined>(options: ServerOptions<U>): Server {
  return new Http1Server(options);
}

class Http1Server<U> implements Server, ConnectionHost<U>, Swept {
  readonly engine: Engine;
  readonly shortenReads: ReadShortener;
  readonly parserLimits: RequestLimits;
  readonly bodyBytesMax: number;
  readonly requestsPerConnectionMax: number;
  readonly readAheadBytesMax: number;
  readonly headMs: number;
  readonly bodyIdleMs: number;
  readonly keepAliveMs: number;
  readonly writeStallMs: number;
  readonly lingerMs: number;
  readonly halfCloseMs: number;
  draining = false;
  endsStreams = false;
  active = 0;
  tunnels = 0;
  readonly handle: (exchange: Exchange<U>) => void;

  readonly #options: ServerOptions<U>;
  readonly #connectionsMax: number;
  readonly #connections = new Set<ClientConnection<U>>();
  readonly #tls: TlsListener | null;
  readonly #listener: TcpServer;
  #onEmpty: (() => void)[] = [];

  constructor(options: ServerOptions<U>) {
    const { limits = {}, timeouts = {} } = options;
    this.#options = options;
    this.engine = options.engine;
    this.handle = options.handler;
    this.parserLimits = {
      ...(limits.headBytesMax === undefined ? {} : { headBytesMax: limits.headBytesMax }),
      ...(limits.fieldsMax === undefined ? {} : { fieldsMax: limits.fieldsMax }),
      ...(limits.targetBytesMax === undefined ? {} : { targetBytesMax: limits.targetBytesMax }),
    };
    this.bodyBytesMax = limits.bodyBytesMax ?? 10_485_760;
    this.requestsPerConnectionMax = limits.requestsPerConnectionMax ?? 1_000_000;
    this.readAheadBytesMax = limits.readAheadBytesMax ?? 65_536;
    this.#connectionsMax = limits.connectionsMax ?? 65_536;
    this.headMs = timeouts.headMs ?? 30_000;
    this.bodyIdleMs = timeouts.bodyIdleMs ?? 60_000;
    this.keepAliveMs = timeouts.keepAliveMs ?? 75_000;
    this.writeStallMs = timeouts.writeStallMs ?? 60_000;
    this.lingerMs = timeouts.lingerMs ?? 5_000;
    this.halfCloseMs = timeouts.halfCloseMs ?? 1_000;
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
        timeouts.handshakeMs ?? 10_000,
        onSocket,
        (fault) => {
          this.onFault(fault);
        },
      );
      this.#listener = this.#tls.listener;
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
          // Errors of accept (EMFILE) leave the listener running: they are told, not thrown.
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

  async drain(deadlineMs: number, streamsMs = deadlineMs): Promise<void> {
    this.draining = true;
    if (this.#listener.listening) this.#listener.close();
    for (const connection of this.#connections) connection.drain();
    if (this.#connections.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
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
    if (this.#connections.size > 0) {
      const emptied = new Promise<void>((resolve) => {
        this.#onEmpty.push(resolve);
      });
      for (const connection of this.#connections) connection.destroy();
      await emptied;
    }
    this.#tls?.close();
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
      // The client is answered all the same: what the engine says by itself is always there.
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

  forget(connection: ClientConnection<U>): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #accept(socket: Socket): void {
    if (this.#connections.size >= this.#connectionsMax || this.draining) {
      const remoteAddress = socket.remoteAddress ?? "";
      socket.on("error", () => {});
      socket.destroy();
      if (this.draining) return;
      this.onFault({ kind: "too-many-connections", status: 0, code: "", remoteAddress });
      return;
    }
    const { createUserData } = this.#options;
    const userData = createUserData === undefined ? (undefined as U) : createUserData();
    this.#connections.add(new ClientConnection(socket, this, userData));
  }
}
