// The local service of all cases: nginx with a small and a large file.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../tests/stage/process.ts";
import { writeLoadedNginxConfig } from "../harness/nginx.ts";
import { startPinned, type PinnedProcess } from "../harness/process.ts";

/** Bytes of the answer to any path but `/large`. */
export const SMALL_BODY_BYTES = 1_024;
/** Bytes of the answer to `/large`. */
const LARGE_BODY_BYTES = 67_108_864;

/** A running local service. */
export interface LocalService {
  port: number;
  process: PinnedProcess;
}

/** Starts the service in a folder below `scratch`. */
export async function startLocalService(scratch: string, cores: string): Promise<LocalService> {
  const port = await findFreePort();
  const folder = join(scratch, "local");
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
    name: "local nginx",
    cores,
    ...writeLoadedNginxConfig(folder, { http: config }),
  });
  await awaitPort(started, port);
  return { port, process: started };
}
