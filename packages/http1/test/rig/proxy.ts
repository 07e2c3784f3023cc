// Starts the proxy process on a runtime, and talks to it.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { ask } from "./raw.ts";
import type { ProxySettings } from "./proxy-process.ts";

/** Black-box suites run on Node and on Bun, or on the one in `PLATFORM_TEST_RUNTIME`. */
export const runtimes: readonly string[] = chooseRuntimes();

const BUN = fileURLToPath(
  new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
);

/** Generous, so that a busy machine does not look like a defect. */
const WAIT_MS = 30_000;

/** The state of the proxy; reading it clears the lists. */
export interface ProxyState {
  server: { connections: number; active: number; tunnels: number };
  pools: Record<string, { open: number; connecting: number; idle: number; waiting: number }>;
  finished: {
    outcome: string;
    status: number;
    bytesIn: number;
    bytesOut: number;
    attempts: number;
    failures: string[];
  }[];
  /** Path, outcome and status of every request that has ended. */
  ends: string[];
  faults: string[];
  errors: string[];
  /** Notes of taps, filters and sources. */
  seen: string[];
}

/** A running proxy. */
export interface Proxy {
  readonly port: number;
  state(): Promise<ProxyState>;
  /** Polls until `accept` returns true, at most half a minute. */
  until(accept: (state: ProxyState) => boolean): Promise<ProxyState>;
  send(message: unknown): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a proxy; `stop` it. */
export async function startProxy(runtime: string, settings: ProxySettings = {}): Promise<Proxy> {
  const program = fileURLToPath(new URL("proxy-process.ts", import.meta.url));
  const child = spawn(runtime === "bun" ? BUN : process.execPath, [program], {
    env: { ...process.env, PROXY: JSON.stringify(settings), NODE_OPTIONS: "" },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const port = await readPort(child);
  const isTls = settings.tls !== undefined;
  const state = async (): Promise<ProxyState> => {
    if (isTls) throw new Error("The state of a TLS proxy is read over TLS");
    const answer = await ask(port, "GET /state HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as ProxyState;
  };
  return {
    port,
    state,
    async until(accept) {
      const deadline = performance.now() + WAIT_MS;
      const finished: ProxyState["finished"] = [];
      const seen: string[] = [];
      for (;;) {
        const now = await state();
        finished.push(...now.finished);
        seen.push(...now.seen);
        const whole = { ...now, finished, seen };
        if (accept(whole)) return whole;
        if (performance.now() > deadline) {
          throw new Error(`The proxy never got there: ${JSON.stringify(whole)}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    send(message) {
      return new Promise((resolve) => {
        child.once("message", () => {
          resolve();
        });
        child.send(message as object);
      });
    },
    stop() {
      return new Promise((resolve) => {
        if (child.exitCode !== null) {
          resolve();
          return;
        }
        child.once("exit", () => {
          resolve();
        });
        child.kill("SIGKILL");
      });
    },
  };
}

function readPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => {
      reject(new Error(`The proxy ended with ${code}`));
    });
    let text = "";
    child.stdout!.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      const end = text.indexOf("\n");
      if (end !== -1) resolve((JSON.parse(text.slice(0, end)) as { port: number }).port);
    });
  });
}

function chooseRuntimes(): string[] {
  const wanted = process.env["PLATFORM_TEST_RUNTIME"];
  if (wanted !== undefined && wanted !== "") return [wanted];
  const bun = fileURLToPath(
    new URL("../../../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url),
  );
  return existsSync(bun) ? ["node", "bun"] : ["node"];
}
