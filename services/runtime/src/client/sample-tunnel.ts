// A tunnel to the sample upstream, for those who try the platform: it ends by itself.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TUNNEL_MAIN, TUNNEL_TOKEN } from "../services/tunnel.ts";
import { readLines } from "../supervisor/line-splitter.ts";
import { findService, requireCredential, type Target } from "./target.ts";

/** Time for which it is open. */
const SAMPLE_TUNNEL_MS = 600_000;
const OPEN_TIMEOUT_MS = 20_000;

/** A tunnel that is open. */
export interface OpenTunnel {
  url: string;
  endsAtMs: number;
}

/** At most one tunnel to the sample. */
export class SampleTunnel {
  readonly #getTarget: () => Target;
  #child: ChildProcess | undefined;
  #opened: Promise<OpenTunnel> | undefined;

  constructor(getTarget: () => Target) {
    this.#getTarget = getTarget;
  }

  /** Opens it, or resolves with the one that is open. Rejects if the relay or the sample does not run, or refuses it. */
  async open(): Promise<OpenTunnel> {
    this.#opened ??= this.#start();
    try {
      return await this.#opened;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Ends it. */
  close(): void {
    this.#child?.kill("SIGTERM");
    this.#child = undefined;
    this.#opened = undefined;
  }

  async #start(): Promise<OpenTunnel> {
    const target = this.#getTarget();
    const relay = findService(target, "tunnel", "tunnel").url.replace(/^http/, "ws");
    const sample = new URL(findService(target, "hello", "the sample").url);
    const token = requireCredential(target, TUNNEL_TOKEN)
      .split(",")[0]!
      .replace(/^[^:]*:/, "");
    // It has its own names at the relay.
    const folder = join(target.dataDir, "sample-tunnel");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const child = spawn(
      process.execPath,
      [
        ...process.execArgv,
        fileURLToPath(TUNNEL_MAIN),
        "client",
        sample.host,
        "--relay",
        `${relay}/ws/connect`,
        "--json",
      ],
      {
        stdio: ["ignore", "pipe", "ignore"],
        env: {
          PATH: process.env["PATH"],
          PLATFORM_TUNNEL_DATA_DIR: folder,
          PLATFORM_TUNNEL_TOKEN: token.trim(),
        },
      },
    );
    this.#child = child;
    const end = setTimeout(() => this.close(), SAMPLE_TUNNEL_MS).unref();
    child.once("exit", () => {
      clearTimeout(end);
      if (this.#child === child) this.close();
    });
    const endsAtMs = Date.now() + SAMPLE_TUNNEL_MS;
    return { url: await readAddress(child), endsAtMs };
  }
}

/** Waits for the address of the tunnel. */
function readAddress(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const late = setTimeout(
    () => reject(new Error("the tunnel did not open in time")),
    OPEN_TIMEOUT_MS,
  );
  child.once("error", reject);
  child.once("exit", () => reject(new Error("the client of the tunnel has ended")));
  readLines(child.stdout!, (line) => {
    const event = parseEvent(line);
    if (event?.type === "refused") reject(new Error(`the tunnel was refused: ${event.reason}`));
    const [first] = event?.tunnels ?? [];
    if (first?.url !== undefined) resolve(first.url);
    else if (first?.error !== undefined) reject(new Error(first.error.detail));
  });
  return promise.finally(() => clearTimeout(late));
}

interface ClientEvent {
  type?: string;
  reason?: string;
  tunnels?: { url?: string; error?: { detail: string } }[];
}

function parseEvent(line: string): ClientEvent | undefined {
  try {
    return JSON.parse(line) as ClientEvent;
  } catch {
    return undefined;
  }
}
