// The control plane's listener: a Unix socket in a folder with mode 0700, or a named pipe on Windows.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Duplex } from "node:stream";
import type { Service } from "@platform/chassis";
import type { AdminFeeds, LineStreams } from "@platform/kernel/feeds";
import { type Api, type HttpListener, mapLegacyPath } from "@platform/kernel/http";
import { CONTROL_SECRET_HEADER } from "../shared-state/index.ts";
import { METRICS_SOCKET_PATH } from "./admin-api.ts";
import type { MetricsSockets } from "./metrics-socket.ts";
import { createSecretCheck } from "./request.ts";

/** Prefix of the names of folders with control sockets. */
export const CONTROL_FOLDER_PREFIX = "pgate-";
/** File name of a control socket. */
export const CONTROL_SOCKET_NAME = "c.sock";
const CONSOLE_SOCKET_NAME = "u.sock";
/** Maximum length of a socket path: sun_path has 104 bytes on macOS, 108 on Linux. */
const SOCKET_PATH_CHARS_MAX = 100;
const CONNECTIONS_MAX = 4096;
/** Longer than workers keep idle connections: they close them first, so no request meets a closed connection. */
const KEEP_ALIVE_TIMEOUT_MS = 4_000_000;

/** Socket paths of the control plane and of a shared console, and the secret of the former's callers. */
export interface ControlAddress {
  socketPath: string;
  consolePath: string;
  secret: string;
}

/** Creates a new address; on Unix also its folder with mode 0700. */
export function createControlAddress(): ControlAddress {
  const secret = randomBytes(32).toString("base64url");
  if (process.platform === "win32") {
    const name = randomBytes(12).toString("hex");
    const socketPath = `\\\\.\\pipe\\platform-gate-${name}`;
    return { socketPath, consolePath: `${socketPath}-console`, secret };
  }
  const parent = tmpdir().length + 24 > SOCKET_PATH_CHARS_MAX ? "/tmp" : tmpdir();
  const folder = mkdtempSync(join(parent, CONTROL_FOLDER_PREFIX));
  chmodSync(folder, 0o700);
  return {
    socketPath: join(folder, CONTROL_SOCKET_NAME),
    consolePath: join(folder, CONSOLE_SOCKET_NAME),
    secret,
  };
}

/** Removes the folder created by {@link createControlAddress}. */
export function removeControlAddress({ socketPath }: ControlAddress): void {
  if (process.platform !== "win32") rmSync(dirname(socketPath), { recursive: true, force: true });
}

/** The servers of WebSockets. */
export interface ControlSockets {
  metrics: MetricsSockets;
  feeds: Pick<AdminFeeds, "handleUpgrade">;
  accessLog: Pick<LineStreams<never>, "handleUpgrade">;
}

/** Serves the API and its WebSockets on the address. */
export function listenControl(
  service: Service,
  address: ControlAddress,
  api: Api,
  { metrics, feeds, accessLog }: ControlSockets,
): Promise<HttpListener> {
  const isSecret = createSecretCheck(address.secret);
  return service.serve({
    address: { path: address.socketPath },
    setting: "TMPDIR",
    fetch: api.fetch,
    onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const path = mapLegacyPath((request.url ?? "/").split("?")[0] ?? "/");
      const isAllowed = isSecret(request.headers[CONTROL_SECRET_HEADER]);
      if (isAllowed && path === METRICS_SOCKET_PATH && request.method === "GET") {
        metrics.accept(request, socket, head);
        return;
      }
      if (isAllowed && feeds.handleUpgrade(request, socket, head)) return;
      if (isAllowed && accessLog.handleUpgrade(request, socket, head)) return;
      const status = isAllowed ? "400 Bad Request" : "403 Forbidden";
      socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    },
    keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
    connectionsMax: CONNECTIONS_MAX,
  });
}
