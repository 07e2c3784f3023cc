// One supervised process: started, watched, started again when it ends by itself, stopped in the end.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { SUPERVISED_VARIABLE, isServiceMessage } from "@platform/kernel/lifecycle";
import type { ListenerReport } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { STABLE_RUN_MS, computeBackoffMs } from "./backoff.ts";
import { readLines } from "./line-splitter.ts";

const READY_TIMEOUT_MS = 30_000;
// After its own deadline a service cuts what is left within a second; this is for one that does not.
const KILL_GRACE_MS = 3000;

/** What is needed to run a process. */
export interface ProcessOptions {
  name: string;
  /** File URL of the module. */
  main: string;
  /** Asked before each start. */
  configure: () => { args: string[]; env: Record<string, string> };
  /** Takes each line of the process's output. */
  onLine: (line: string) => void;
  /** Called whenever the process has become ready, restarts included. */
  onReady: (listeners: readonly ListenerReport[], pid: number) => void;
  logger: Logger;
  clock: Clock;
  /** Time for a start in milliseconds; default 30 000. */
  readyTimeoutMs?: number;
}

/** A process under supervision. */
export interface SupervisedProcess {
  readonly name: string;
  /** Starts it the first time; rejects when it ends or does not become ready. */
  start(): Promise<void>;
  /** Ends it in order, by force after `timeoutMs`; resolves when it is gone. */
  stop(timeoutMs: number): Promise<void>;
}

type State =
  | { kind: "idle" }
  | { kind: "running"; child: ChildProcess; startedMs: number; ready: boolean }
  | { kind: "waiting"; timer: NodeJS.Timeout }
  | { kind: "stopped" };

/** Puts a process under supervision; it is not started yet. */
export function createSupervisedProcess(options: ProcessOptions): SupervisedProcess {
  const { name, logger, clock } = options;
  let state: State = { kind: "idle" };
  let failures = 0;
  const first = Promise.withResolvers<void>();
  // Whoever starts it hears of a failure; nobody has to.
  first.promise.catch(() => undefined);
  let proven = false;

  function launch(): void {
    const { args, env } = options.configure();
    const child = spawnProcess(options.main, args, env);
    const startedMs = clock.monotonicMs();
    const running: State = { kind: "running", child, startedMs, ready: false };
    state = running;
    const timer = setTimeout(() => {
      logger.error("did not become ready in time", { part: name });
      child.kill("SIGKILL");
    }, options.readyTimeoutMs ?? READY_TIMEOUT_MS);
    readLines(child.stdout!, options.onLine);
    readLines(child.stderr!, options.onLine);
    child.on("message", (message) => {
      if (!isServiceMessage(message) || message.type !== "ready") return;
      clearTimeout(timer);
      running.ready = true;
      proven = true;
      options.onReady(message.listeners, message.pid);
      first.resolve();
    });
    let ended = false;
    const handleEnd = (outcome: string): void => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      handleExit(running, outcome);
    };
    child.on("error", (error) => handleEnd(error.message));
    // "exit" comes before the last lines are read; they are still delivered.
    child.on("exit", (code, signal) => handleEnd(signal ?? `exit code ${code}`));
  }

  function handleExit(running: Extract<State, { kind: "running" }>, outcome: string): void {
    if (state !== running) return;
    if (!proven) {
      state = { kind: "stopped" };
      first.reject(new Error(`${name} ended before it was ready (${outcome})`));
      return;
    }
    const ranMs = clock.monotonicMs() - running.startedMs;
    failures = ranMs >= STABLE_RUN_MS ? 1 : failures + 1;
    const delayMs = computeBackoffMs(failures);
    logger.warn("ended by itself; starting it again", {
      part: name,
      outcome,
      restart_in_ms: delayMs,
    });
    state = { kind: "waiting", timer: setTimeout(launch, delayMs) };
  }

  return {
    name,
    start() {
      if (state.kind === "idle") launch();
      return first.promise;
    },
    async stop(timeoutMs) {
      const before = state;
      state = { kind: "stopped" };
      if (before.kind === "waiting") clearTimeout(before.timer);
      if (!proven) first.reject(new Error(`${name} was stopped before it was ready`));
      if (before.kind === "running") await endChild(before.child, timeoutMs, logger, name);
    },
  };
}

// Its own process group: a ctrl-c at the terminal reaches the supervisor alone, which stops everything in order. Its
// lifeline is the IPC channel.
function spawnProcess(
  main: string,
  args: readonly string[],
  env: Record<string, string>,
): ChildProcess {
  return spawn(process.execPath, [fileURLToPath(main), ...args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: process.platform !== "win32",
    env: { ...process.env, ...env, [SUPERVISED_VARIABLE]: "1", PLATFORM_LOG_FORMAT: "json" },
  });
}

async function endChild(
  child: ChildProcess,
  timeoutMs: number,
  logger: Logger,
  name: string,
): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
  });
  child.kill("SIGTERM");
  const timer = setTimeout(() => {
    logger.warn("did not stop in time: killed", { part: name });
    child.kill("SIGKILL");
  }, timeoutMs + KILL_GRACE_MS);
  await gone;
  clearTimeout(timer);
}
