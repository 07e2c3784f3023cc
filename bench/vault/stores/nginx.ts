// nginx with files: the limit of the machine for serving bytes.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { awaitPort } from "../../../tests/stage/process.ts";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { writeLoadedNginxConfig } from "../../harness/nginx.ts";
import { startPinned } from "../../harness/process.ts";
import type { ObjectStore } from "./store.ts";

/** The upper bound of GET. */
export const nginxFiles: ObjectStore = {
  name: "nginx",
  isOurs: false,
  isStatic: true,
  explainAbsence: () => (findProgram("nginx") === undefined ? "nginx is not installed" : undefined),
  readVersion: () => askVersion("nginx", ["-v"]),
  start: async ({ port, cores, folder, workspace }) => {
    mkdirSync(join(folder, "bench"), { recursive: true });
    const http = `server {
      listen 127.0.0.1:${port} backlog=4096;
      root ${folder};
      default_type application/octet-stream;
      sendfile on; tcp_nopush on;
    }`;
    const started = workspace.keep(
      startPinned({
        name: "nginx",
        cores,
        ...writeLoadedNginxConfig(join(folder, "etc"), { http }),
      }),
    );
    await awaitPort(started, port);
    return [started.pid];
  },
};
