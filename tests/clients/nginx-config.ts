// An nginx in the foreground with a folder of its own.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../stage/program.ts";

/** Writes the configuration with the given http block and returns the command that runs it. */
export function writeNginxConfig(
  folder: string,
  httpBlock: string,
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
    `daemon off; ${user} worker_processes 1; pid ${join(folder, "nginx.pid")};
     error_log stderr crit; events { worker_connections 256; }
     http { access_log off; ${temporary} ${httpBlock} }\n`,
  );
  return { command: findProgram("nginx") ?? "nginx", args: ["-p", folder, "-c", path] };
}
