// Configuration of nginx under load: no limit on connections, and none is closed because of its age.
import { writeNginxConfig, type NginxParts } from "../../tests/stage/nginx.ts";

/** Writes its configuration and returns the command that runs it in the foreground. */
export function writeLoadedNginxConfig(
  folder: string,
  parts: Omit<NginxParts, "connections">,
): { command: string; args: string[] } {
  const keepAlive = "keepalive_requests 1000000000; keepalive_timeout 300s; tcp_nodelay on;";
  return writeNginxConfig(folder, {
    ...parts,
    connections: 16_384,
    http: `${keepAlive} ${parts.http}`,
  });
}
