// HTTP listener: node:http with bounded heads, times and connections, on TCP or a Unix socket, with graceful shutdown.
import { chmodSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type Socket } from "node:net";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { HttpConnections, type HttpConnectionsOptions } from "./connections.ts";
import { inviteAtFirstRead } from "./expectation.ts";
import { LingeringClose } from "./linger.ts";

/**
 * Listening address: with port 0 the system chooses a free port; without a host it is `::`, all addresses of IPv6 and IPv4, or
 * `0.0.0.0` on machines without IPv6. The folder of a Unix socket is created with mode 0700.
 */
export type ListenAddress = { host?: string | undefined; port: number } | { path: string };

/** Options of {@link listenHttp}. */
export interface ListenOptions extends HttpConnectionsOptions {
  address: ListenAddress;
  fetch: (request: Request, bindings: HttpBindings) => Promise<Response>;
  /** Called with each request first; returns true if it handles the request itself. */
  intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Certificate chain and key in PEM. With them the listener accepts only TLS 1.2 or later. */
  tls?: { cert: string | Buffer; key: string | Buffer };
  /** Handles upgrade requests (WebSocket); without it they are handled as plain requests. */
  onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Timeout of a request head in ms. Default 10 000. */
  headTimeoutMs?: number;
  /** Timeout of a request with its body in ms. Default 60 000. */
  requestTimeoutMs?: number;
  /** Idle timeout of a persistent connection in ms. Default 75 000. */
  keepAliveTimeoutMs?: number;
  /**
   * Maximum time for which the rest of a request body is read (up to 16 MiB) after a response that closes the
   * connection, in ms. Default 5 000.
   */
  lingerMs?: number;
  /** Maximum size of a request head in bytes. Default 32 KiB. */
  headBytesMax?: number;
}

/** A running listener. */
export interface HttpListener {
  /** The host of the options, else the address of all interfaces that is bound; undefined for a Unix socket. */
  readonly host: string | undefined;
  /** The actual port; undefined for a Unix socket. */
  readonly port: number | undefined;
  /** `http://host:port`, or `unix:path`. */
  readonly url: string;
  /** Replaces the certificate for new connections; throws if it is invalid, or if the listener does not use TLS. */
  setTls(tls: { cert: string | Buffer; key: string | Buffer }): void;
  /**
   * Closes gracefully: accepts no more connections, waits for requests in flight, and closes the remaining connections
   * after `drainMs`.
   */
  close(drainMs: number): Promise<void>;
}

const FIELDS_MAX = 128;
const REQUEST_TIMEOUT_MS = 60_000;

/** Starts listening. Rejects with the system's error. */
export async function listenHttp(options: ListenOptions): Promise<HttpListener> {
  const headTimeoutMs = options.headTimeoutMs ?? 10_000;
  const answer = getRequestListener(
    (request, bindings) => options.fetch(request, bindings as HttpBindings),
    // Called if a Request could not be created, or the client has gone: there is no trace and no route.
    { overrideGlobalObjects: false, errorHandler: () => new Response(null, { status: 400 }) },
  );
  const bounds = {
    maxHeaderSize: options.headBytesMax ?? 32_768,
    headersTimeout: headTimeoutMs,
    requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    keepAliveTimeout: options.keepAliveTimeoutMs ?? 75_000,
    connectionsCheckingInterval: Math.min(1_000, headTimeoutMs),
  };
  const lingering = new LingeringClose(options.lingerMs ?? 5_000);
  const connections = new HttpConnections(options, (request, response) => {
    if (options.intercept?.(request, response) !== true) void answer(request, response);
  });
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (lingering.admit(request)) connections.enqueue(request, response);
  };
  const { tls } = options;
  const secure =
    tls === undefined
      ? undefined
      : createTlsServer(
          { ...bounds, ...tls, minVersion: "TLSv1.2", handshakeTimeout: headTimeoutMs },
          onRequest,
        );
  const server = secure ?? createServer(bounds, onRequest);
  server.prependListener("connection", (socket: Socket) => connections.admit(socket));
  server.on(secure === undefined ? "connection" : "secureConnection", (socket: Socket) =>
    connections.watch(socket),
  );
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    inviteAtFirstRead(request, response);
    onRequest(request, response);
  });
  server.maxHeadersCount = FIELDS_MAX;
  if (options.onUpgrade !== undefined) server.on("upgrade", options.onUpgrade);
  try {
    await startServer(server, options.address);
  } catch (error) {
    connections.close();
    throw error;
  }
  const bound = server.address();
  const { address: boundHost, port } =
    typeof bound === "object" && bound !== null ? bound : { address: "", port: undefined };
  const host = "path" in options.address ? undefined : (options.address.host ?? boundHost);
  return {
    host,
    port,
    url: "path" in options.address ? `unix:${options.address.path}` : formatUrl(tls, host!, port),
    setTls: (next) => {
      if (secure === undefined) throw new Error("the listener does not use TLS");
      secure.setSecureContext({ ...next, minVersion: "TLSv1.2" });
    },
    close: async (drainMs) => {
      await closeServer(server, drainMs);
      connections.close();
    },
  };
}

async function startServer(server: Server, address: ListenAddress): Promise<void> {
  if ("path" in address) {
    mkdirSync(dirname(address.path), { recursive: true, mode: 0o700 });
    await removeStaleSocket(address.path);
  }
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      server.off("error", reject);
      resolve();
    });
  });
  if ("path" in address && process.platform !== "win32") chmodSync(address.path, 0o600);
}

// A killed process leaves its socket file, which prevents listening. If a process accepts connections on it, it is in
// use.
async function removeStaleSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || !found.isSocket()) return;
  const isStale = await new Promise<boolean>((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
  if (isStale) unlinkSync(path);
}

async function closeServer(server: Server, drainMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const deadline = performance.now() + drainMs;
  const untilClosed = closed.then(() => true);
  for (let done = false; !done && performance.now() < deadline;) {
    // Connections become idle after their response, and would stay open.
    server.closeIdleConnections();
    done = await Promise.race([untilClosed, sleep(20, false)]);
  }
  server.closeAllConnections();
  await closed;
}

function formatUrl(tls: ListenOptions["tls"], host: string, port: number | undefined): string {
  const scheme = tls === undefined ? "http" : "https";
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
