// A supervised process: started, restarted after it exits unexpectedly, and stopped.
import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import {
  SUPERVISED_VARIABLE,
  isServiceMessage,
  type ListenerReport,
} from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { LONGEST_MS, STABLE_RUN_MS, computeBackoffMs } from "./backoff.ts";
import { readLines } from "./line-splitter.ts";
import { KillStreak, MEMORY_KILL, TOO_MANY_KILLS, type MemoryKills } from "./memory.ts";

const READY_TIMEOUT_MS = 90_000;
// A service ends within a second after its drain deadline; this bound is for one that hangs.
const KILL_GRACE_MS = 3000;
const REFUSED_STOP_MS = 5_000;
/** Consecutive failures that are reported as a loop. */
const LOOP_FAILURES = 4;
const ERROR_CHARACTERS_MAX = 500;

/** A start of a process. */
export interface Launch {
  args: readonly string[];
  env: Record<string, string>;
  /** Another module than `main`, as file URL. */
  main?: string;
  cwd?: string;
  /** Variables besides `env`; default: those of this process. */
  inherited?: Readonly<Record<string, string>>;
}

/** Options of {@link createSupervisedProcess}. */
export interface SupervisedProcessOptions {
  name: string;
  /** Command that shows its log. */
  logCommand: string;
  /** File URL of the module. */
  main: string;
  /** Called before each start. */
  configure: () => Launch;
  /** Called with each line of output. */
  onLine: (line: string) => void;
  /** Called when the process is ready, also after a restart. */
  onReady: (listeners: readonly ListenerReport[], pid: number) => void;
  /** Called when the process has exited unexpectedly after it was ready once. */
  onFailure?: (failure: Failure) => void;
  /** Called with messages of the process other than those of its lifecycle. */
  onMessage?: (message: unknown) => void;
  /** The reason why a message is not understood; undefined if it is. */
  refuse?: (message: unknown) => string | undefined;
  /** Tells whether a process that SIGKILL has ended was killed for lack of memory. */
  memoryKills?: MemoryKills;
  /**
   * Called when the process has ended and is not started again: because of a message that is not understood, or because it
   * was killed for lack of memory several times.
   */
  onRefused?: (reason: string) => void;
  logger: Logger;
  clock: Clock;
  /** Startup timeout in ms; default 90 000. */
  readyTimeoutMs?: number;
}

/** An unexpected exit. */
export interface Failure {
  /** Exit code or signal, with the last error that the process printed. */
  reason: string;
  /** Consecutive failures. */
  failures: number;
  restartInMs: number;
}

/** A process under supervision. */
export interface SupervisedProcess {
  readonly name: string;
  /**
   * Starts the process, also after `stop`; resolves when it is ready. The first start rejects if the process exits before;
   * later it is started again, until it is stopped.
   */
  start(): Promise<void>;
  /** Stops the process gracefully, kills it after `timeoutMs`; resolves when it has exited. */
  stop(timeoutMs: number): Promise<void>;
  /** Sends a message to the process; false if it does not run. */
  send(message: object): boolean;
  /** Kills the process without waiting, for a supervisor that exits immediately. */
  kill(): void;
}

type State =
  | { kind: "idle" }
  | { kind: "running"; child: ChildProcess; startedMs: number; ready: boolean }
  | { kind: "waiting"; timer: NodeJS.Timeout }
  | { kind: "stopped" };

/** Creates a supervised process without starting it. */
export function createSupervisedProcess(options: SupervisedProcessOptions): SupervisedProcess {
  const { name, logger, clock } = options;
  let state: State = { kind: "idle" };
  let failures = 0;
  let lastError = "";
  let current: ChildProcess | undefined; // also while it stops
  let starting = createStart();
  let ending = Promise.resolve(); // a second SIGTERM would end the process without a drain
  let proven = false;
  const kills = new KillStreak();

  function launch(): void {
    const launched = options.configure();
    const child = spawnProcess(launched.main ?? options.main, launched);
    current = child;
    const startedMs = clock.monotonicMs();
    const running: State = { kind: "running", child, startedMs, ready: false };
    state = running;
    const timer = limitStart(options, child);
    const onLine = (line: string): void => {
      lastError = readError(line) ?? lastError;
      options.onLine(line);
    };
    lastError = "";
    readLines(child.stdout!, onLine);
    readLines(child.stderr!, onLine);
    child.on("message", (message) => {
      const refusal = options.refuse?.(message);
      if (refusal !== undefined) {
        clearTimeout(timer);
        endRefused(running, refusal);
        return;
      }
      if (!isServiceMessage(message)) {
        options.onMessage?.(message);
        return;
      }
      if (message.type !== "ready") return;
      clearTimeout(timer);
      running.ready = true;
      proven = true;
      options.onReady(message.listeners, message.pid);
      starting.resolve();
    });
    onEnd(child, (outcome) => {
      clearTimeout(timer);
      handleExit(running, outcome);
    });
  }

  // Another start would have the same outcome.
  function endRefused(running: Extract<State, { kind: "running" }>, reason: string): void {
    if (state !== running) return;
    state = { kind: "stopped" };
    logger.error("refused", { part: name, reason });
    starting.reject(new Error(`${name}: ${reason}`));
    ending = endChild(running.child, REFUSED_STOP_MS, logger, name);
    options.onRefused?.(reason);
  }

  function handleExit(running: Extract<State, { kind: "running" }>, ended: string): void {
    if (state !== running) return;
    const outcome = options.memoryKills?.explain(ended) ?? ended;
    if (!proven) {
      state = { kind: "stopped" };
      starting.reject(new Error(`${name} exited before it was ready (${outcome})`));
      return;
    }
    if (outcome === MEMORY_KILL && kills.add(clock.monotonicMs())) {
      state = { kind: "stopped" };
      reportKills(options);
      return;
    }
    const ranMs = clock.monotonicMs() - running.startedMs;
    failures = ranMs >= STABLE_RUN_MS ? 1 : failures + 1;
    const delayMs = computeBackoffMs(failures);
    const reason = lastError === "" ? outcome : `${outcome}: ${lastError}`;
    state = { kind: "waiting", timer: setTimeout(launch, delayMs) };
    reportExit(options, { reason, failures, restartInMs: delayMs });
  }

  return {
    name,
    start() {
      if (state.kind === "stopped") {
        starting = createStart();
        failures = 0;
        launch();
      } else if (state.kind === "idle") launch();
      return starting.promise;
    },
    async stop(timeoutMs) {
      const before = state;
      state = { kind: "stopped" };
      if (before.kind === "waiting") clearTimeout(before.timer);
      // Without effect on a start that has ended.
      starting.reject(new Error(`${name} was stopped before it was ready`));
      if (before.kind === "running") ending = endChild(before.child, timeoutMs, logger, name);
      await ending;
    },
    send: (message) => sendTo(current, message),
    kill() {
      current?.kill("SIGKILL");
    },
  };
}

function sendTo(child: ChildProcess | undefined, message: object): boolean {
  if (child?.connected !== true) return false;
  child.send(message, () => undefined);
  return true;
}

function onEnd(child: ChildProcess, callback: (outcome: string) => void): void {
  let ended = false;
  const end = (outcome: string): void => {
    if (ended) return;
    ended = true;
    callback(outcome);
  };
  child.on("error", (error) => end(error.message));
  // "exit" is emitted before the last lines are read; they are still delivered.
  child.on("exit", (code, signal) => end(signal ?? `exit code ${code}`));
}

function reportKills({ name, logger, onRefused }: SupervisedProcessOptions): void {
  logger.error("stopped; the other services continue", { part: name, reason: TOO_MANY_KILLS });
  onRefused?.(TOO_MANY_KILLS);
}

function limitStart(
  { name, logger, readyTimeoutMs }: SupervisedProcessOptions,
  child: ChildProcess,
): NodeJS.Timeout {
  return setTimeout(() => {
    logger.error("startup timed out", { part: name });
    child.kill("SIGKILL");
  }, readyTimeoutMs ?? READY_TIMEOUT_MS);
}

function reportExit(
  { name, logger, logCommand, onFailure }: SupervisedProcessOptions,
  failure: Failure,
): void {
  const { reason, failures, restartInMs } = failure;
  onFailure?.(failure);
  const part = { part: name, outcome: reason };
  logger.warn("exited unexpectedly; restarting", { ...part, restart_in_ms: restartInMs });
  if (failures !== LOOP_FAILURES) return;
  logger.error("keeps exiting; the other services continue", {
    ...part,
    failures,
    remedy: `correct what its last error names: ${logCommand}; it is started again after up to ${LONGEST_MS / 1000} s each time`,
  });
}

// `start` may never be called: the rejection must not count as unhandled.
function createStart(): PromiseWithResolvers<void> {
  const start = Promise.withResolvers<void>();
  start.promise.catch(() => undefined);
  return start;
}

// The message of an error event, or of a crash, which the runtime prints as text (`TypeError: …`).
function readError(line: string): string | undefined {
  if (/^(?:\w*Error|\w+: fatal)\b/.test(line)) return line.slice(0, ERROR_CHARACTERS_MAX);
  if (!line.startsWith('{"level":"error"')) return undefined;
  try {
    const { msg, error } = JSON.parse(line) as { msg?: unknown; error?: { message?: unknown } };
    const detail = typeof error?.message === "string" ? `: ${error.message}` : "";
    return `${String(msg)}${detail}`.slice(0, ERROR_CHARACTERS_MAX);
  } catch {
    return undefined;
  }
}

// A separate process group: ctrl-c reaches only the supervisor, which then stops all services gracefully. If the
// supervisor dies, the IPC channel closes and the service drains.
function spawnProcess(
  main: string,
  { args, env, cwd, inherited = process.env as Record<string, string> }: Launch,
): ChildProcess {
  return spawn(process.execPath, [fileURLToPath(main), ...args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: process.platform !== "win32",
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...inherited, ...env, [SUPERVISED_VARIABLE]: "1", PLATFORM_LOG_FORMAT: "json" },
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
    logger.warn("shutdown timed out: killed", { part: name });
    child.kill("SIGKILL");
  }, timeoutMs + KILL_GRACE_MS);
  await gone;
  clearTimeout(timer);
}
