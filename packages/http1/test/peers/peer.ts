// Starts a real proxy in front of recording upstreams, on sockets in a folder of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, type Server, type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { type RecordedRequest, startRecorder } from "./recorder.ts";

const START_ATTEMPTS = 100;
const START_PAUSE_MS = 50;

/** One way through a proxy: a socket in front, a recording upstream behind. */
export interface Lane {
  socketPath: string;
  recorded: RecordedRequest[];
}

/** A running proxy. */
export interface Peer {
  lanes: Lane[];
  stop(): Promise<void>;
}

/** A proxy that can be started. */
export interface PeerKind {
  name: string;
  program: string;
  /** The configuration file's text for sockets and upstream ports. */
  configure(folder: string, lanes: { socketPath: string; port: number }[]): string;
  args(folder: string, file: string): string[];
}

/** nginx with generous buffers, so that it judges bytes and not sizes. */
export const nginx: PeerKind = {
  name: "nginx",
  program: "/usr/sbin/nginx",
  configure: (folder, lanes) => `
daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off; large_client_header_buffers 8 64k; client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
${lanes
  .map(
    ({ socketPath, port }) => `  server { listen unix:${socketPath}; location / {
    proxy_pass http://127.0.0.1:${port}; proxy_http_version 1.1;
    proxy_set_header Host a.example; proxy_set_header Connection "";
  } }`,
  )
  .join("\n")}
}
`,
  args: (folder, file) => ["-p", folder, "-c", file, "-e", join(folder, "error.log")],
};

/** HAProxy with its defaults. */
export const haproxy: PeerKind = {
  name: "haproxy",
  program: "/usr/sbin/haproxy",
  configure: (_folder, lanes) => `
global
  maxconn 256
  tune.bufsize 65536
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
${lanes
  .map(
    ({ socketPath, port }, index) => `frontend f${index}
  bind unix@${socketPath}
  default_backend b${index}
backend b${index}
  server s 127.0.0.1:${port}`,
  )
  .join("\n")}
`,
  args: (_folder, file) => ["-db", "-q", "-f", file],
};

/** Why a test that needs this proxy is skipped; `false` if it is not. Throws where peers are required. */
export function reasonToSkip(kind: PeerKind): string | false {
  if (existsSync(kind.program)) return false;
  const reason = `${kind.program} is missing: install the Debian package ${kind.name}`;
  if (process.env.PLATFORM_TEST_PEERS === "required") throw new Error(reason);
  return reason;
}

/** Starts a proxy with this many lanes and waits until each accepts connections. */
export async function startPeer(kind: PeerKind, laneCount: number): Promise<Peer> {
  const folder = await mkdtemp(join(tmpdir(), `http1-${kind.name}-`));
  const upstreams: Server[] = [];
  const open = new Set<Socket>();
  const lanes: Lane[] = [];
  const wiring: { socketPath: string; port: number }[] = [];
  for (let index = 0; index < laneCount; index++) {
    const lane: Lane = { socketPath: join(folder, `${index}.sock`), recorded: [] };
    const upstream = await startRecorder(lane.recorded, open);
    upstreams.push(upstream);
    lanes.push(lane);
    wiring.push({ socketPath: lane.socketPath, port: (upstream.address() as AddressInfo).port });
  }
  const file = join(folder, "peer.conf");
  await writeFile(file, kind.configure(folder, wiring));
  const child = spawn(kind.program, kind.args(folder, file), {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  const stop = async (): Promise<void> => {
    await endChild(child);
    for (const socket of open) socket.destroy();
    for (const upstream of upstreams) upstream.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    for (const lane of lanes) await waitForSocket(lane.socketPath, child, () => complaints);
  } catch (error) {
    await stop();
    throw error;
  }
  return { lanes, stop };
}

async function waitForSocket(
  path: string,
  child: ChildProcess,
  complaints: () => string,
): Promise<void> {
  for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
    if (child.exitCode !== null) throw new Error(`the proxy ended: ${complaints()}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect({ path });
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
    if (isOpen) return;
    await delay(START_PAUSE_MS);
  }
  throw new Error(`the proxy does not listen on ${path}: ${complaints()}`);
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGKILL");
  await ended;
}
