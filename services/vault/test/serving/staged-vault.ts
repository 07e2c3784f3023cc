// An object store as a process of its own, that tests talk to, kill and start again.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { stageProcess, type StagedProcess } from "./process.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/platform-vaultd.js", import.meta.url));
const READY_TIMEOUT_MS = 30_000;

/** The credentials of a staged store's root user. */
export const vaultRoot = { accessKey: "staged", secretKey: "staged-secret-key" } as const;

/** How a store is started. */
export interface VaultLaunch {
  /** For its data; kept over restarts. */
  folder: string;
  env?: Readonly<Record<string, string>>;
  /** Put before the program, such as `["prlimit", "--fsize=…"]`. */
  wrapper?: readonly string[];
}

/** A running store; its ports stay the same over restarts. */
export class StagedVault implements AsyncDisposable {
  readonly #launch: VaultLaunch;
  #process: StagedProcess | undefined;
  port = 0;
  adminPort = 0;

  private constructor(launch: VaultLaunch) {
    this.#launch = launch;
  }

  /** Starts a store and waits until it is ready. */
  static async start(launch: VaultLaunch): Promise<StagedVault> {
    const vault = new StagedVault(launch);
    mkdirSync(launch.folder, { recursive: true });
    await vault.start();
    return vault;
  }

  /** `http://127.0.0.1:PORT` of the object API. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** `http://127.0.0.1:PORT` of the admin API. */
  get adminUrl(): string {
    return `http://127.0.0.1:${this.adminPort}`;
  }

  /** The folder that the store keeps everything in. */
  get dataDir(): string {
    return join(this.#launch.folder, "data");
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  /** What it has written, logs mostly. */
  readOutput(): string {
    return this.#process?.readOutput() ?? "";
  }

  /** Starts it again, after `stop` or `kill`; `env` is added to what it was launched with. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const launch = [...(this.#launch.wrapper ?? []), process.execPath, PROGRAM];
    const flags = [`--port=127.0.0.1:${this.port}`, `--admin-port=127.0.0.1:${this.adminPort}`];
    const staged = stageProcess({
      name: "vault",
      command: launch[0] ?? process.execPath,
      args: [...launch.slice(1), ...flags],
      cwd: this.#launch.folder,
      env: {
        STORE_ACCESS_KEY_ID: vaultRoot.accessKey,
        STORE_SECRET_ACCESS_KEY: vaultRoot.secretKey,
        PLATFORM_VAULT_DATA_DIR: this.dataDir,
        PLATFORM_VAULT_TENANT_RATE: "0",
        ...this.#launch.env,
        ...env,
      },
    });
    this.#process = staged;
    const deadline = Date.now() + READY_TIMEOUT_MS;
    for (;;) {
      const listeners = readListeners(staged.readOutput());
      if (listeners !== undefined) {
        this.port = listeners.get("http")!;
        this.adminPort = listeners.get("admin")!;
        return;
      }
      if (staged.hasExited() || Date.now() > deadline) {
        await staged.stop();
        throw new Error(`the store is not ready: ${staged.readOutput()}`);
      }
      await sleep(20);
    }
  }

  /** `kill -9`, and waits until it is gone. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.stop();
  }

  /** SIGTERM; fails unless it ends well. */
  async stop(): Promise<void> {
    const code = await this.#process?.stop();
    assert.equal(code, 0, this.readOutput());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.stop();
  }
}

function readListeners(output: string): Map<string, number> | undefined {
  const line = output.split("\n").find((text) => text.includes('"msg":"ready"'));
  if (line === undefined) return undefined;
  const { listeners } = JSON.parse(line) as { listeners: { name: string; port: number }[] };
  return new Map(listeners.map(({ name, port }) => [name, port]));
}
