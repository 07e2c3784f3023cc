// Storage in its own process, which tests can kill and restart.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";

const PROGRAM = fileURLToPath(new URL("../../../bin/platform-vaultd.js", import.meta.url));
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const OUTPUT_CHARS_MAX = 65_536;

/** The credentials of a staged service's root user. */
export const vaultRoot = { accessKey: "staged", secretKey: "staged-secret-key" } as const;

/** Options of the start. */
export interface VaultLaunch {
  /** The data folder, kept over restarts. */
  folder: string;
  env?: Readonly<Record<string, string>>;
}

/** A running service; its ports stay the same over restarts. */
export class StagedVault implements AsyncDisposable {
  readonly #launch: VaultLaunch;
  #child: ChildProcess | undefined;
  #output = "";
  port = 0;
  adminPort = 0;

  private constructor(launch: VaultLaunch) {
    this.#launch = launch;
  }

  /** Starts a service and waits until it is ready. */
  static async start(launch: VaultLaunch): Promise<StagedVault> {
    const vault = new StagedVault(launch);
    mkdirSync(launch.folder, { recursive: true });
    await vault.start();
    return vault;
  }

  /** The last output since its start. */
  get output(): string {
    return this.#output;
  }

  /** Id of the current process. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** `http://127.0.0.1:PORT` of the object API. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** `http://127.0.0.1:PORT` of the admin API. */
  get adminUrl(): string {
    return `http://127.0.0.1:${this.adminPort}`;
  }

  /** The data folder. */
  get dataDir(): string {
    return join(this.#launch.folder, "data");
  }

  /** Restarts it after `stop` or `kill`; `env` is added to its environment. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const flags = [`--port=127.0.0.1:${this.port}`, `--admin-port=127.0.0.1:${this.adminPort}`];
    const child = spawn(process.execPath, [PROGRAM, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: this.#launch.folder,
      env: {
        ...process.env,
        STORE_ACCESS_KEY_ID: vaultRoot.accessKey,
        STORE_SECRET_ACCESS_KEY: vaultRoot.secretKey,
        PLATFORM_VAULT_DATA_DIR: this.dataDir,
        PLATFORM_VAULT_TENANT_RATE: "0",
        ...this.#launch.env,
        ...env,
      },
    });
    this.#child = child;
    this.#output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_CHARS_MAX);
      });
    }
    const deadline = Date.now() + READY_TIMEOUT_MS;
    for (;;) {
      const listeners = readListeners(this.#output);
      if (listeners !== undefined) {
        this.port = listeners.get("http")!;
        this.adminPort = listeners.get("admin")!;
        return;
      }
      if (hasExited(child) || Date.now() > deadline) {
        await this.#end("SIGKILL");
        throw new Error(`the store is not ready: ${this.#output}`);
      }
      await sleep(20);
    }
  }

  /** `kill -9`, then waits until it has ended. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM; fails unless it exits with 0. */
  async stop(): Promise<void> {
    assert.equal(await this.#end("SIGTERM"), 0, this.#output);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (!hasExited(child)) {
      const exited = once(child, "exit");
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    }
    return child.exitCode;
  }
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function readListeners(output: string): Map<string, number> | undefined {
  const line = output.split("\n").find((text) => text.includes('"msg":"ready"'));
  if (line === undefined) return undefined;
  const { listeners } = JSON.parse(line) as { listeners: { name: string; port: number }[] };
  return new Map(listeners.map(({ name, port }) => [name, port]));
}
