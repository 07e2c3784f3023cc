// Child processes of tests: started on known ports, stopped by process id.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export { findFreePort } from "@platform/kernel/testing";

const OUTPUT_CHARS_MAX = 64 * 1024;
const LISTEN_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 40_000;

/** Options of a child process. */
export interface Launch {
  /** Name in messages. */
  name: string;
  command: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
}

/** A child process of a test. */
export interface StagedProcess {
  name: string;
  pid: number;
  /** The end of stdout and stderr. */
  readOutput(): string;
  hasExited(): boolean;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM, and SIGKILL after 40 seconds; resolves with the exit code. */
  stop(): Promise<number | null>;
}

/** Starts a child and keeps its output for messages. */
export function stageProcess(launch: Launch): StagedProcess {
  const child = spawn(launch.command, launch.args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...launch.env },
    ...(launch.cwd === undefined ? {} : { cwd: launch.cwd }),
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => resolve(code));
    child.once("error", () => resolve(null));
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      output += text;
      // Cutting copies the text. Soaks measure latencies on this thread, so not each line may cost as much.
      if (output.length > OUTPUT_CHARS_MAX * 16) output = output.slice(-OUTPUT_CHARS_MAX);
    });
  }
  child.on("error", (error) => (output += String(error)));
  const hasExited = (): boolean =>
    child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  return {
    name: launch.name,
    pid: child.pid ?? -1,
    readOutput: () => output.slice(-OUTPUT_CHARS_MAX),
    hasExited,
    kill: (signal) => void child.kill(signal),
    stop: async () => {
      if (hasExited()) return child.exitCode;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      const code = await exited;
      clearTimeout(timer);
      return code;
    },
  };
}

/** Waits for a listener on a port of 127.0.0.1; rejects if the process ends or the timeout expires. */
export async function awaitPort(
  staged: Pick<StagedProcess, "name" | "hasExited" | "readOutput">,
  port: number,
  timeoutMs = LISTEN_TIMEOUT_MS,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await canConnect(port))) {
    if (staged.hasExited() || Date.now() > deadline) {
      throw new Error(`${staged.name} does not listen on ${port}: ${staged.readOutput()}`);
    }
    await sleep(25);
  }
}

async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
