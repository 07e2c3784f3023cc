// The upstream of every gateway case: nginx, static answers, on the load's core.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, startPinned, waitForPort, type PinnedProcess } from "../harness/process.ts";

/** Bytes of the answer to any path but `/large`. */
export const SMALL_BODY_BYTES = 100;
/** Bytes of the answer to `/large`. */
export const LARGE_BODY_BYTES = 1_048_576;

/** A running upstream. */
export interface Upstream {
  port: number;
  process: PinnedProcess;
}

/** Starts it in a folder of its own below `scratch`. */
export async function startUpstream(scratch: string, cores: string): Promise<Upstream> {
  const port = await findFreePort();
  const folder = join(scratch, "upstream");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "large"), Buffer.alloc(LARGE_BODY_BYTES, "x"));
  const body = "x".repeat(SMALL_BODY_BYTES);
  const config = `
    server {
      listen 127.0.0.1:${port} backlog=4096;
      root ${folder};
      default_type text/plain;
      location = /large { sendfile on; tcp_nopush on; }
      location / { return 200 "${body}"; }
    }`;
  const started = startPinned({
    name: "upstream nginx",
    cores,
    ...writeNginxConfig(folder, { workers: 1, http: config }),
  });
  await waitForPort(started, port);
  return { port, process: started };
}

/** Writes an nginx configuration and returns the command that runs it in the foreground. */
export function writeNginxConfig(
  folder: string,
  parts: { workers: number; http: string; accessLog?: string },
): { command: string; args: string[] } {
  mkdirSync(folder, { recursive: true });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
    .join(" ");
  const path = join(folder, "nginx.conf");
  // root: Debian's nginx would change to www-data, which may not read the scratch folder.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    path,
    `daemon off; ${user} worker_processes ${parts.workers}; 
     pid ${join(folder, "nginx.pid")}; error_log stderr crit;
     events { worker_connections 16384; }
     http {
       access_log ${parts.accessLog ?? "off"}; ${temporary}
       keepalive_requests 1000000000; keepalive_timeout 300s; tcp_nodelay on;
       ${parts.http}
     }\n`,
  );
  return { command: "nginx", args: ["-p", folder, "-c", path] };
}
