// The life of a service process: start, ready, reload, drain, exit.
import type { Logger } from "../log/index.ts";
import { createParentLink } from "./parent.ts";
import type { ListenerReport, ParentLink } from "./parent.ts";

// npm and shells pass on a signal that the terminal has already sent to everyone: one ctrl-c arrives twice.
const SAME_SIGNAL_MS = 500;
// What is still running when the deadline has passed gets this long to cut its connections.
const CUT_GRACE_MS = 1000;
const ORPHAN_DRAIN_MS = 5000;
const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

/** How a process ends. */
export const exitCodes = {
  ok: 0,
  /** It could not start, failed while running, or did not drain in time. */
  failure: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
} as const;

/** What a drain hook works with. */
export interface DrainContext {
  /** Aborted when the time is over: cut what is left. */
  deadline: AbortSignal;
  /** Milliseconds left until then, at least 0. */
  remainingMs(): number;
}

/** A part's way to stop: resolves when the part has ended. */
export type DrainHook = (context: DrainContext) => void | Promise<void>;

/** What a starting service is given. */
export interface Lifecycle {
  /** Aborted as soon as the service begins to stop: readiness turns DOWN, nothing new is begun. */
  readonly stopping: AbortSignal;
  /** Registers how a part stops. Hooks run one after another, the last registered first. */
  onDrain(name: string, hook: DrainHook): void;
  /** Registers what SIGHUP does. Runs never overlap; a signal during a run causes one more. Without any, SIGHUP drains. */
  onReload(name: string, hook: () => void | Promise<void>): void;
  /** Tells where the service really listens; with port 0 this is how anyone learns the port. */
  reportListener(listener: ListenerReport): void;
  /** Registers what is done once the service is ready and has said so. */
  onReady(callback: () => void): void;
  /** Begins to stop as a signal would; `exitCode` is what the process ends with. */
  stop(reason: string, exitCode?: number): void;
}

/** How a service process is run. */
export interface ServiceOptions {
  service: string;
  version: string;
  logger: Logger;
  /** How long the drain may take, in milliseconds. */
  drainTimeoutMs: number;
}

/**
 * Runs a service until it is told to stop, and then ends the process: `start` builds the parts and registers how they
 * stop. SIGTERM and SIGINT drain and exit 0; a second signal ends at once with 128 + its number; a failed start, an
 * uncaught error and a drain past its deadline exit 1. A process under a supervisor drains when that goes away.
 */
export async function runService(
  options: ServiceOptions,
  start: (lifecycle: Lifecycle) => void | Promise<void>,
): Promise<never> {
  const { logger } = options;
  const parent = createParentLink(process);
  const machine = createMachine(options, parent);
  installHandlers(machine, parent, logger);
  void begin(machine, logger, start);
  const code = await machine.ended;
  return process.exit(code);
}

// Not awaited by the end: a signal during a start that hangs must still end the process.
async function begin(
  machine: Machine,
  logger: Logger,
  start: (lifecycle: Lifecycle) => void | Promise<void>,
): Promise<void> {
  try {
    await start(machine.lifecycle);
    machine.setReady();
  } catch (error) {
    if (machine.lifecycle.stopping.aborted) return;
    logger.error("the service could not start", { error });
    machine.lifecycle.stop("failed start", exitCodes.failure);
  }
}

interface Machine {
  lifecycle: Lifecycle;
  ended: Promise<number>;
  setReady(): void;
  reload(): void;
  handleSignal(signal: "SIGINT" | "SIGTERM"): void;
  hasReload(): boolean;
  /** Shortens the time that a drain may take, from now. */
  hurry(timeoutMs: number): void;
}

function createMachine(options: ServiceOptions, parent: ParentLink): Machine {
  const { logger } = options;
  const stopping = new AbortController();
  const ended = Promise.withResolvers<number>();
  const hooks: { name: string; hook: DrainHook }[] = [];
  const reloads: { name: string; hook: () => void | Promise<void> }[] = [];
  const listeners: ListenerReport[] = [];
  const readyCallbacks: (() => void)[] = [];
  let drainTimeoutMs = options.drainTimeoutMs;
  let firstSignalMs = Number.NaN;
  let exitCode: number = exitCodes.ok;
  let reloading: "idle" | "running" | "again" = "idle";

  function stop(reason: string, code: number = exitCodes.ok): void {
    exitCode = Math.max(exitCode, code);
    if (stopping.signal.aborted) return;
    logger.info("stopping", { reason, drain_timeout_ms: drainTimeoutMs });
    parent.send({ type: "draining", service: options.service });
    stopping.abort();
    void drain(hooks, drainTimeoutMs, logger).then((inTime) => {
      const code = inTime ? exitCode : Math.max(exitCode, exitCodes.failure);
      logger.info("stopped", { exit_code: code });
      ended.resolve(code);
    });
  }

  async function reload(): Promise<void> {
    if (reloading !== "idle") {
      reloading = "again";
      return;
    }
    do {
      reloading = "running";
      for (const { name, hook } of reloads) {
        try {
          await hook();
        } catch (error) {
          logger.error("reload failed; what ran before goes on", { part: name, error });
        }
      }
      // A signal that came meanwhile has set it to `again`, which the checker cannot see.
    } while ((reloading as string) === "again");
    reloading = "idle";
  }

  return {
    ended: ended.promise,
    lifecycle: {
      stopping: stopping.signal,
      onDrain: (name, hook) => void hooks.push({ name, hook }),
      onReload: (name, hook) => void reloads.push({ name, hook }),
      onReady: (callback) => void readyCallbacks.push(callback),
      reportListener: (listener) => void listeners.push(listener),
      stop,
    },
    setReady() {
      if (stopping.signal.aborted) return;
      logger.info("ready", { version: options.version, pid: process.pid, listeners });
      parent.send({
        type: "ready",
        service: options.service,
        version: options.version,
        pid: process.pid,
        listeners,
      });
      for (const callback of readyCallbacks) callback();
    },
    reload: () => void reload(),
    hasReload: () => reloads.length > 0,
    handleSignal(signal) {
      const nowMs = performance.now();
      if (Number.isNaN(firstSignalMs)) {
        firstSignalMs = nowMs;
        stop(signal);
      } else if (nowMs - firstSignalMs > SAME_SIGNAL_MS) {
        logger.warn("second signal: ending at once", { signal });
        process.exit(128 + SIGNAL_NUMBERS[signal]);
      }
    },
    hurry(timeoutMs) {
      drainTimeoutMs = Math.min(drainTimeoutMs, timeoutMs);
    },
  };
}

function installHandlers(machine: Machine, parent: ParentLink, logger: Logger): void {
  process.on("SIGTERM", () => machine.handleSignal("SIGTERM"));
  process.on("SIGINT", () => machine.handleSignal("SIGINT"));
  process.on("SIGHUP", () => {
    if (machine.hasReload()) machine.reload();
    else machine.handleSignal("SIGTERM");
  });
  // After an uncaught error nobody knows what state the parts are in: finish what can be finished, then end.
  const fail = (error: unknown): void => {
    logger.error("uncaught error", { error });
    machine.lifecycle.stop("uncaught error", exitCodes.failure);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  parent.onGone(() => {
    machine.hurry(ORPHAN_DRAIN_MS);
    machine.lifecycle.stop("the supervisor has gone");
  });
}

async function drain(
  hooks: { name: string; hook: DrainHook }[],
  timeoutMs: number,
  logger: Logger,
): Promise<boolean> {
  const deadline = new AbortController();
  const endsMs = performance.now() + timeoutMs;
  const given = Promise.withResolvers<"late">();
  const cut = setTimeout(() => {
    logger.warn("drain deadline reached: cutting what is left", { drain_timeout_ms: timeoutMs });
    deadline.abort();
    setTimeout(() => given.resolve("late"), CUT_GRACE_MS);
  }, timeoutMs);
  const context: DrainContext = {
    deadline: deadline.signal,
    remainingMs: () => Math.max(0, endsMs - performance.now()),
  };
  let inTime = true;
  // Taken off one by one: a start that is still under way may add to them.
  for (let part = hooks.pop(); part !== undefined; part = hooks.pop()) {
    const { name, hook } = part;
    try {
      const outcome = await Promise.race([
        Promise.resolve(hook(context)).then(() => "done" as const),
        given.promise,
      ]);
      if (outcome === "late") {
        logger.error("did not stop in time", { part: name });
        inTime = false;
        break;
      }
    } catch (error) {
      logger.error("stopping failed", { part: name, error });
      inTime = false;
    }
  }
  clearTimeout(cut);
  return inTime;
}
