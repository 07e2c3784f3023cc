// WebSockets of handlers: upgrade, ordered messages, keep-alive, bounds.
import { IncomingMessage } from "node:http";
import { checkSameOrigin } from "@platform/kernel/http-parts";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { WebSocketServer, type RawData, type WebSocket } from "ws";
import { HttpError } from "../error/http-error.ts";
import type { SocketHandlers } from "../result/web-socket.ts";
import type { Call } from "./call.ts";

const SOCKETS_MAX = 10_000;
const PING_MS = 30_000;
const UNSENT_BYTES_MAX = 16_777_216;
/** Messages of a socket that wait for its handler; above, the client is paused. */
const WAITING_MAX = 16;
const MESSAGE_BYTES_MAX = 1_048_576;
const CLOSE_MS = 1_000;

interface Open {
  isAlive: boolean;
}

/** The open WebSockets of a service. */
export class Sockets {
  readonly #open = new Map<WebSocket, Open>();
  readonly #timer: RepeatingTimer;

  constructor(log: Logger) {
    this.#timer = every(
      PING_MS,
      () => this.#ping(),
      (error) => log.error("ping failed", { error }),
    );
  }

  get count(): number {
    return this.#open.size;
  }

  /** Upgrades a request. Throws an HttpError if it cannot be upgraded. */
  accept(call: Call, handlers: SocketHandlers): void {
    this.#check(call, handlers);
    const { socket, rest } = call.exchange.takeSocket(null);
    const request = new IncomingMessage(socket);
    Object.assign(request, {
      method: call.method,
      url: call.path,
      headers: Object.fromEntries(call.headers),
    });
    const server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: handlers.messageBytesMax ?? MESSAGE_BYTES_MAX,
      perMessageDeflate: false,
      handleProtocols: () => false,
    });
    server.handleUpgrade(request, socket, rest, (accepted) => {
      this.#add(accepted, handlers, call.log);
    });
  }

  /** Closes all sockets with 1001 (going away); those that do not answer are terminated. */
  async close(): Promise<void> {
    await this.#timer.stop();
    if (this.#open.size === 0) return;
    const closed = Array.from(
      this.#open.keys(),
      (socket) => new Promise<void>((resolve) => socket.once("close", () => resolve())),
    );
    for (const socket of this.#open.keys()) socket.close(1001, "the service is stopping");
    const timer = setTimeout(() => {
      for (const socket of this.#open.keys()) socket.terminate();
    }, CLOSE_MS);
    await Promise.all(closed);
    clearTimeout(timer);
  }

  #check({ method, headers }: Call, { origins }: SocketHandlers): void {
    if (method !== "GET" || headers.get("upgrade")?.toLowerCase() !== "websocket") {
      throw new HttpError(426, "This path serves WebSockets only.", {
        headers: { Upgrade: "websocket" },
      });
    }
    if (this.#open.size >= SOCKETS_MAX) {
      throw new HttpError(503, `More than ${SOCKETS_MAX} WebSockets are open.`);
    }
    const origin = headers.get("origin");
    if (origin !== undefined && origins?.includes(origin) === true) return;
    const verdict = checkSameOrigin(headers.get("host") ?? "", (name) => headers.get(name));
    if (!verdict.allowed) throw new HttpError(403, `The WebSocket is refused: ${verdict.reason}.`);
  }

  #add(socket: WebSocket, handlers: SocketHandlers, log: Logger): void {
    const open: Open = { isAlive: true };
    this.#open.set(socket, open);
    let waiting = 0;
    const fail = (error: unknown): void => {
      log.error("WebSocket handler failed", { error });
      socket.close(1011, "internal error");
    };
    // Each message waits for the handler of the one before.
    let last: Promise<void> = Promise.resolve();
    const enqueue = (work: () => void | Promise<void> | undefined): void => {
      if (++waiting >= WAITING_MAX) socket.pause();
      last = last
        .then(work)
        .catch(fail)
        .then(() => {
          if (--waiting < WAITING_MAX && socket.isPaused) socket.resume();
        });
    };
    socket.on("pong", () => void (open.isAlive = true));
    socket.on("message", (data: RawData, isBinary) => {
      const message = isBinary ? toBuffer(data) : toBuffer(data).toString();
      enqueue(() => handlers.message?.(socket, message));
    });
    socket.on("error", () => socket.terminate());
    socket.on("close", (code) => {
      this.#open.delete(socket);
      void last.then(() => handlers.close?.(socket, code)).catch(fail);
    });
    enqueue(() => handlers.open?.(socket));
  }

  #ping(): void {
    for (const [socket, open] of this.#open) {
      if (!open.isAlive || socket.bufferedAmount > UNSENT_BYTES_MAX) {
        socket.terminate();
        continue;
      }
      open.isAlive = false;
      socket.ping();
    }
  }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
