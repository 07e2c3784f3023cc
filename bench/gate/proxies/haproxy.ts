// HAProxy with one thread per worker; upstream connections are always reused.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { Proxy, ProxySetup } from "./proxy.ts";

/** The fastest peer. */
export const haproxy: Proxy = {
  name: "HAProxy",
  isOurs: false,
  explainAbsence: () => (findProgram("haproxy") ? undefined : "haproxy is not installed"),
  readVersion: () => askVersion("haproxy", ["-v"]),
  start: (setup) =>
    startPinned({
      name: "haproxy",
      command: "haproxy",
      args: ["-db", "-q", "-f", writeConfig(setup)],
      cores: setup.cores,
    }),
};

function writeConfig(setup: ProxySetup): string {
  mkdirSync(setup.folder, { recursive: true });
  const path = join(setup.folder, "haproxy.cfg");
  writeFileSync(
    path,
    `global
  nbthread ${setup.workers}
  maxconn 16384
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
  option forwardfor
  http-reuse always
frontend front
  bind 127.0.0.1:${setup.port} backlog 4096
  default_backend back
backend back
  http-request set-header X-Forwarded-Proto http
  server upstream 127.0.0.1:${setup.upstreamPort} pool-max-conn 128
`,
  );
  return path;
}
