// Our relay and client, started as a user would start them.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { findBin, findRuntime, type Build } from "../../harness/build.ts";
import { startPinned, type PinnedProcess } from "../../harness/process.ts";
import type { Tunnel, TunnelSetup } from "./tunnel.ts";

const OPEN_TIMEOUT_MS = 10_000;

/** A running relay. */
export interface RunningRelay {
  port: number;
  process: PinnedProcess;
}

/** Ours on one runtime; capture, metrics and the client's request lines are on, as they are by default. */
export function makePlatformTunnel(build: Build): Tunnel {
  return {
    name: `tunnel (${build.label})`,
    isOurs: true,
    explainAbsence: () => {
      if (!existsSync(findBin(build, "platform-tunnel"))) {
        return "bin/platform-tunnel.js is not there";
      }
      return existsSync(findRuntime(build.runtime))
        ? undefined
        : `${build.runtime} is not installed`;
    },
    readVersion: () => askVersion(findRuntime(build.runtime), ["--version"]),
    open: async (setup) => {
      const relay = await startRelay(build, setup);
      const client = startClient(build, setup, relay.port);
      await awaitOutput(client, "bench.localhost");
      return {
        port: relay.port,
        host: `bench.localhost:${relay.port}`,
        pids: [relay.process.pid, client.pid],
      };
    },
  };
}

/** Starts a relay alone. */
export async function startRelay(
  build: Build,
  { cores, folder, workspace }: Omit<TunnelSetup, "localPort">,
): Promise<RunningRelay> {
  mkdirSync(folder, { recursive: true });
  const port = await findFreePort();
  const relay = workspace.keep(
    startPinned({
      name: `relay on ${build.label}`,
      command: process.execPath,
      args: [findBin(build, "platform-tunnel"), "server", "--addr", `127.0.0.1:${port}`],
      cores,
      env: { PLATFORM_RUNTIME: build.runtime, PLATFORM_TUNNEL_DATA_DIR: join(folder, "relay") },
    }),
  );
  await awaitPort(relay, port);
  return { port, process: relay };
}

function startClient(build: Build, setup: TunnelSetup, relayPort: number): PinnedProcess {
  const options = ["--subdomain", "bench", "--inspect-port", "0"];
  const relay = ["--relay", `ws://127.0.0.1:${relayPort}/ws/connect`];
  return setup.workspace.keep(
    startPinned({
      name: `client on ${build.label}`,
      command: process.execPath,
      args: [
        findBin(build, "platform-tunnel"),
        "client",
        `127.0.0.1:${setup.localPort}`,
        ...options,
        ...relay,
      ],
      cores: setup.cores,
      env: {
        PLATFORM_RUNTIME: build.runtime,
        PLATFORM_TUNNEL_DATA_DIR: join(setup.folder, "client"),
      },
    }),
  );
}

/** Waits for a text in the output of a program. */
export async function awaitOutput(started: PinnedProcess, text: string): Promise<void> {
  const deadline = Date.now() + OPEN_TIMEOUT_MS;
  while (!started.readOutput().includes(text)) {
    if (started.hasExited() || Date.now() > deadline) {
      throw new Error(`${started.name} did not print "${text}": ${started.readOutput()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
