// The control plane's socket: a Unix socket in a folder that only this user can enter, a named pipe on Windows.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { CONTROL_SECRET_HEADER } from "../snapshot/index.ts";
import { metricsSocketPath } from "./app.ts";
import type { MetricsSockets } from "./metrics-socket.ts";
import { getCurrentPath } from "./own-paths.ts";
import { createSecretCheck } from "./request.ts";

/** Socket paths are short everywhere: sun_path holds 104 bytes on macOS, 108 on Linux. */
const socketPathCharsMax = 100;
const connectionsMax = 4096;

/** Where the control plane listens, and what its callers prove themselves with. */
export type ControlAddress = { socketPath: string; secret: string };

/** Chooses a fresh address; on Unix its folder exists afterwards, with mode 0700. */
export function createControlAddress(): ControlAddress {
  const secret = randomBytes(32).toString("base64url");
  if (process.platform === "win32") {
    const name = randomBytes(12).toString("hex");
    return { socketPath: `\\\\.\\pipe\\platform-gate-${name}`, secret };
  }
  const parent = tmpdir().length + 24 > socketPathCharsMax ? "/tmp" : tmpdir();
  const folder = mkdtempSync(join(parent, "pgate-"));
  chmodSync(folder, 0o700);
  return { socketPath: join(folder, "c.sock"), secret };
}

/** Removes what {@link createControlAddress} made. */
export function removeControlAddress({ socketPath }: ControlAddress): void {
  if (process.platform !== "win32") rmSync(dirname(socketPath), { recursive: true, force: true });
}

/** The listening control plane. */
export class ControlServer {
  readonly #server: Server;

  constructor(options: { app: Hono; sockets: MetricsSockets; address: ControlAddress }) {
    const isSecret = createSecretCheck(options.address.secret);
    // Workers keep their connections: the bounds on time are theirs.
    this.#server = createServer(
      { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 },
      getRequestListener(options.app.fetch),
    );
    this.#server.maxConnections = connectionsMax;
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const path = getCurrentPath((request.url ?? "/").split("?")[0] ?? "/");
      const given = request.headers[CONTROL_SECRET_HEADER];
      const allowed = typeof given === "string" && isSecret(given);
      if (allowed && path === metricsSocketPath && request.method === "GET") {
        options.sockets.accept(request, socket, head);
        return;
      }
      const status = allowed ? "400 Bad Request" : "403 Forbidden";
      socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    });
  }

  /** Listens; rejects where the socket cannot be made. */
  async listen(address: ControlAddress): Promise<void> {
    const listening = Promise.withResolvers<void>();
    this.#server.once("error", listening.reject);
    this.#server.listen(address.socketPath, listening.resolve);
    await listening.promise;
    this.#server.off("error", listening.reject);
  }

  /** Accepts no more and ends every connection. */
  async close(): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    this.#server.closeAllConnections();
    await closed.promise;
  }
}
