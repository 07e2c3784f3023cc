// nginx with static responses: the upstream of the gateway's cases, and the local service behind tunnels.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../tests/stage/process.ts";
import { writeLoadedNginxConfig } from "./nginx.ts";
import { startPinned, type PinnedProcess } from "./process.ts";

/** Options of {@link startStaticNginx}. */
export interface StaticNginxOptions {
  /** The server's files are in a folder below it. */
  scratch: string;
  cores: string;
  /** Bytes of the answer to `/large`. */
  largeBytes: number;
  /** Bytes of the answer to all other paths. */
  smallBytes: number;
}

/** A running nginx. */
export interface StaticNginx {
  port: number;
  process: PinnedProcess;
}

export async function startStaticNginx(options: StaticNginxOptions): Promise<StaticNginx> {
  const { scratch, cores, largeBytes, smallBytes } = options;
  const port = await findFreePort();
  const folder = join(scratch, "static");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "large"), Buffer.alloc(largeBytes, "x"));
  const body = "x".repeat(smallBytes);
  const config = `
    server {
      listen 127.0.0.1:${port} backlog=4096;
      root ${folder};
      default_type text/plain;
      location = /large { sendfile on; tcp_nopush on; }
      location / { return 200 "${body}"; }
    }`;
  const started = startPinned({
    name: "static nginx",
    cores,
    ...writeLoadedNginxConfig(folder, { http: config }),
  });
  await awaitPort(started, port);
  return { port, process: started };
}
