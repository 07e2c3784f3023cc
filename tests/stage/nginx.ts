// An nginx in the foreground with a folder of its own.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "./program.ts";

/** What is in the configuration beside what every nginx here needs. */
export interface NginxParts {
  /** Inside of the http block. */
  http: string;
  /** One by default. */
  workers?: number;
  /** Connections of a worker, those to upstreams included; 256 by default. */
  connections?: number;
  /** A file; none by default. */
  accessLog?: string;
}

/** Writes the configuration and returns the command that runs it. */
export function writeNginxConfig(
  folder: string,
  { http, workers = 1, connections = 256, accessLog = "off" }: NginxParts,
): { command: string; args: string[] } {
  mkdirSync(folder, { recursive: true });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
    .join(" ");
  const path = join(folder, "nginx.conf");
  // As root, Debian's nginx would change to a user that may not read the scratch folder.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  writeFileSync(
    path,
    `daemon off; ${user} worker_processes ${workers}; pid ${join(folder, "nginx.pid")};
     error_log stderr crit; events { worker_connections ${connections}; }
     http { access_log ${accessLog}; ${temporary} ${http} }\n`,
  );
  return { command: findProgram("nginx") ?? "nginx", args: ["-p", folder, "-c", path] };
}
