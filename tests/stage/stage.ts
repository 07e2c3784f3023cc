// A gateway with upstreams as separate processes, and other processes of a test.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import {
  awaitPort,
  findFreePort,
  stageProcess,
  type Launch,
  type StagedProcess,
} from "./process.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const READY_TIMEOUT_MS = 15_000;

/** A route as in the configuration file. */
export type RouteDocument = { prefix: string } & Record<string, unknown>;

/** A running gateway. */
export interface StagedGateway {
  port: number;
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  url: string;
  process: StagedProcess;
  /** Rewrites the configuration file with these routes; the caller reloads. */
  writeRoutes(routes: readonly RouteDocument[]): void;
}

/** A running upstream. */
export interface StagedUpstream {
  port: number;
  url: string;
  process: StagedProcess;
}

/** Owns a scratch folder and processes; disposal stops and removes them all. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), "platform-stage-"));
  readonly #processes: StagedProcess[] = [];

  /** Starts a program. */
  start(launch: Launch): StagedProcess {
    const staged = stageProcess(launch);
    this.#processes.push(staged);
    return staged;
  }

  /** Starts `upstream-server.ts`, optionally on the port of a previous one. */
  async startUpstream(name: string, port?: number): Promise<StagedUpstream> {
    const chosen = port ?? (await findFreePort());
    const server = fileURLToPath(new URL("upstream-server.ts", import.meta.url));
    const staged = this.start({
      name,
      command: process.execPath,
      args: [server, String(chosen), name],
    });
    await awaitPort(staged, chosen);
    return { port: chosen, url: `http://127.0.0.1:${chosen}`, process: staged };
  }

  /** Starts the gateway by its bin and waits until it is ready. `settings` are top-level keys. */
  async startGateway(
    routes: readonly RouteDocument[],
    settings: Record<string, unknown> = {},
    env: Record<string, string> = {},
  ): Promise<StagedGateway> {
    const port = await findFreePort();
    const path = join(this.folder, `gate-${port}.json`);
    const writeRoutes = (list: readonly RouteDocument[]): void =>
      writeFileSync(path, JSON.stringify({ addr: `127.0.0.1:${port}`, ...settings, routes: list }));
    writeRoutes(routes);
    const staged = this.start({
      name: "gateway",
      command: process.execPath,
      args: [join(REPOSITORY, "bin/platform-gate.js"), "--config", path],
      cwd: this.folder,
      env,
    });
    await awaitPort(staged, port);
    const url = `http://127.0.0.1:${port}`;
    await awaitReady(staged, url);
    return { port, url, process: staged, writeRoutes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#processes.toReversed().map((staged) => staged.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function awaitReady(staged: StagedProcess, url: string): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  for (;;) {
    const status = await fetch(`${url}/readyz`).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    if (status === 200) return;
    if (staged.hasExited() || Date.now() > deadline) {
      throw new Error(`the gateway is not ready (${status}): ${staged.readOutput()}`);
    }
    await sleep(50);
  }
}
