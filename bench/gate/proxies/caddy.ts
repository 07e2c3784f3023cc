// Caddy's reverse_proxy with as many Go processors as workers.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import type { Proxy, ProxySetup } from "./proxy.ts";

/** The peer that is easiest to use. */
export const caddy: Proxy = {
  name: "Caddy",
  isOurs: false,
  explainAbsence: () => (findProgram("caddy") ? undefined : "caddy is not installed"),
  readVersion: () => askVersion("caddy", ["version"]),
  start: (setup) =>
    startPinned({
      name: "caddy",
      command: "caddy",
      args: ["run", "--config", writeConfig(setup), "--adapter", "caddyfile"],
      cores: setup.cores,
      env: {
        GOMAXPROCS: String(setup.workers),
        XDG_DATA_HOME: setup.folder,
        XDG_CONFIG_HOME: setup.folder,
      },
    }),
};

function writeConfig(setup: ProxySetup): string {
  mkdirSync(setup.folder, { recursive: true });
  const path = join(setup.folder, "Caddyfile");
  writeFileSync(
    path,
    `{
	admin off
	auto_https off
}
http://127.0.0.1:${setup.port} {
	reverse_proxy 127.0.0.1:${setup.upstreamPort} {
		${setup.unbuffered ? "flush_interval -1" : ""}
		transport http {
			keepalive 300s
			keepalive_idle_conns_per_host 128
			compression off
		}
	}
}
`,
  );
  return path;
}
