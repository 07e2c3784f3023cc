// nginx in the foreground, with its own folder.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "./program.ts";

/** Additional configuration. */
export interface NginxParts {
  /** In the http block. */
  http: string;
  /** Default 1. */
  workers?: number;
  /** Connections per worker, including upstream connections; default 256. */
  connections?: number;
  /** Path of the access log; disabled by default. */
  accessLog?: string;
}

/** Writes the configuration and returns the command that starts nginx. */
export function writeNginxConfig(
  folder: string,
  { http, workers = 1, connections = 256, accessLog = "off" }: NginxParts,
): { command: string; args: string[] } {
  mkdirSync(folder, { recursive: true });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
    .join(" ");
  const path = join(folder, "nginx.conf");
  // As root, Debian's nginx would switch to a user without access to the scratch folder.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    path,
    `daemon off; ${user} worker_processes ${workers}; pid ${join(folder, "nginx.pid")};
     error_log stderr crit; events { worker_connections ${connections}; }
     http { access_log ${accessLog}; ${temporary} ${http} }\n`,
  );
  return { command: findProgram("nginx") ?? "nginx", args: ["-p", folder, "-c", path] };
}
