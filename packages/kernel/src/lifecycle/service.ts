// Lifecycle of a service process: start, ready, reload, drain, exit.
import { ConfigError } from "../config/index.ts";
import * as modules from "node:module";
import type { Logger } from "../log/index.ts";
import { returnMemory } from "../memory/index.ts";
import {
  ACCEPTED_VARIABLE,
  LiveSecrets,
  readSecretStates,
  replaceInEnvironment,
  type LiveSecret,
} from "../secrets/index.ts";
import { DrainHooks, type DrainHook, type DrainPhase } from "./drain.ts";
import { createParentLink, watchNpm, type ListenerReport, type ParentLink } from "./parent.ts";
import { openTerminal } from "./terminal.ts";

// npm and shells forward signals that the terminal has already sent to the process group: one ctrl-c arrives twice.
const SAME_SIGNAL_MS = 500;
const ORPHAN_DRAIN_MS = 5000;
// The longest interval that timers have: it costs nothing.
const ALIVE_MS = 2 ** 31 - 1;
const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

export const EXIT_CODES = {
  ok: 0,
  /** Failed to start, failed while running, or did not drain in time. */
  failure: 1,
  /** Invalid command line or configuration. */
  usage: 2,
} as const;

/** Lifecycle methods for a starting service. */
export interface Lifecycle {
  /** Aborted when the service begins to stop: readiness turns DOWN and no new work starts. */
  readonly stopping: AbortSignal;
  /**
   * Registers how a component stops. Hooks run one after another: by phase, in a phase in reverse order of registration.
   * Default: "parts".
   */
  onDrain(name: string, hook: DrainHook, phase?: DrainPhase): void;
  /**
   * Registers a handler of SIGHUP. Runs never overlap; a signal during a run causes another run. SIGHUP drains only if the
   * terminal on which the service runs was closed.
   */
  onReload(name: string, hook: () => void | Promise<void>): void;
  /** Reports the actual address of a listener, in particular the port if 0 was configured. */
  reportListener(listener: ListenerReport): void;
  /** Registers a callback that runs after the service has reported to be ready. */
  onReady(callback: () => void): void;
  /**
   * Follows a secret by its name in `credentials.env`: the supervisor may replace it while the service runs. One that is a
   * setting of the operator, or of a service without a supervisor, keeps its value.
   */
  followSecret(name: string, value: string): LiveSecret;
  /** Stops the service like a signal; the process exits with `exitCode`. */
  stop(reason: string, exitCode?: number): void;
}

/** Options of {@link runService}. */
export interface ServiceOptions {
  service: string;
  version: string;
  logger: Logger;
  /** Maximum duration of the drain in ms. */
  drainTimeoutMs: number;
}

/**
 * Runs a service until it is stopped, then exits the process. `start` creates the components and registers how they
 * stop. SIGTERM and SIGINT drain and exit with 0, as does SIGHUP of a closed terminal; a second signal exits immediately with 128 + its number; a failed
 * start, an uncaught error and an exceeded deadline exit with 1. A supervised process drains when its supervisor exits.
 */
export async function runService(
  options: ServiceOptions,
  start: (lifecycle: Lifecycle) => void | Promise<void>,
): Promise<never> {
  const { logger } = options;
  const parent = createParentLink(process);
  const machine = createMachine(options, parent);
  installHandlers(machine, parent, logger);
  // A start may wait for what keeps no process alive, such as an answer over the parent's channel. Only `ended` ends it.
  const alive = setInterval(() => undefined, ALIVE_MS);
  const secrets = followSecrets(parent, logger);
  const followSecret: Lifecycle["followSecret"] = (name, value) => secrets.follow(name, value);
  void begin(machine, logger, () => start({ ...machine.lifecycle, followSecret }));
  const code = await machine.ended;
  clearInterval(alive);
  return process.exit(code);
}

/** The secrets of this process, as its supervisor replaces them. */
function followSecrets(parent: ParentLink, logger: Logger): LiveSecrets {
  const secrets = new LiveSecrets(readSecretStates(process.env));
  // Not for the programs that the service starts.
  delete process.env[ACCEPTED_VARIABLE];
  parent.onSecrets(({ id, states }) => {
    replaceInEnvironment(process.env, states);
    secrets.replace(states).then(
      () => parent.send({ type: "secrets_followed", id }),
      (error: unknown) => {
        logger.error("secrets are not replaced", { error });
        parent.send({ type: "secrets_followed", id, refused: "its log names the reason" });
      },
    );
  });
  return secrets;
}

// Not awaited: a signal must end the process even if the start hangs.
async function begin(
  machine: Machine,
  logger: Logger,
  start: () => void | Promise<void>,
): Promise<void> {
  try {
    await start();
    machine.setReady();
    returnMemory();
  } catch (error) {
    if (machine.lifecycle.stopping.aborted) return;
    logger.error("startup failed", { error });
    const isConfig = error instanceof ConfigError;
    machine.lifecycle.stop("failed start", isConfig ? EXIT_CODES.usage : EXIT_CODES.failure);
  }
}

interface Machine {
  lifecycle: Omit<Lifecycle, "followSecret">;
  ended: Promise<number>;
  setReady(): void;
  reload(): void;
  handleSignal(signal: keyof typeof SIGNAL_NUMBERS): void;
  /** Shortens the maximum duration of the drain. */
  hurry(timeoutMs: number): void;
}

function createMachine(options: ServiceOptions, parent: ParentLink): Machine {
  const { logger } = options;
  const stopping = new AbortController();
  const ended = Promise.withResolvers<number>();
  const hooks = new DrainHooks();
  const reloads: { name: string; hook: () => void | Promise<void> }[] = [];
  const listeners: ListenerReport[] = [];
  const readyCallbacks: (() => void)[] = [];
  let drainTimeoutMs = options.drainTimeoutMs;
  let firstSignalMs = Number.NaN;
  let exitCode: number = EXIT_CODES.ok;
  let reloading: "idle" | "running" | "again" = "idle";

  function stop(reason: string, code: number = EXIT_CODES.ok): void {
    exitCode = Math.max(exitCode, code);
    if (stopping.signal.aborted) return;
    logger.info("stopping", { reason, drain_timeout_ms: drainTimeoutMs });
    parent.send({ type: "draining", service: options.service });
    stopping.abort();
    void hooks.run(drainTimeoutMs, logger).then((inTime) => {
      const code = inTime ? exitCode : Math.max(exitCode, EXIT_CODES.failure);
      logger.info("stopped", { exit_code: code });
      ended.resolve(code);
    });
  }

  async function reload(): Promise<void> {
    if (reloads.length === 0) {
      logger.info("SIGHUP ignored: this service has nothing to reload");
      return;
    }
    if (reloading !== "idle") {
      reloading = "again";
      return;
    }
    do {
      reloading = "running";
      const parts: string[] = [];
      for (const { name, hook } of reloads) {
        try {
          await hook();
          parts.push(name);
        } catch (error) {
          logger.error("reload failed; the previous configuration stays active", {
            part: name,
            error,
          });
        }
      }
      logger.info("reloaded", { parts });
      // A signal may have set it to `again` meanwhile, which TypeScript cannot see.
    } while ((reloading as string) === "again");
    reloading = "idle";
  }

  return {
    ended: ended.promise,
    lifecycle: {
      stopping: stopping.signal,
      onDrain: (name, hook, phase) => hooks.add(name, hook, phase),
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
      // Node does so when a process ends by itself; one that is killed would leave nothing for the next start. Bun lacks it.
      modules.flushCompileCache?.();
    },
    reload: () => void reload(),
    handleSignal(signal) {
      const nowMs = performance.now();
      if (Number.isNaN(firstSignalMs)) {
        firstSignalMs = nowMs;
        stop(signal);
      } else if (nowMs - firstSignalMs > SAME_SIGNAL_MS) {
        logger.warn("second signal: exiting immediately", { signal });
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
  const terminal = openTerminal();
  process.on("SIGHUP", () => {
    if (terminal.isClosed()) machine.handleSignal("SIGHUP");
    else machine.reload();
  });
  // After an uncaught error the state of the components is unknown: drain, then exit.
  const fail = (error: unknown): void => {
    logger.error("uncaught error", { error });
    machine.lifecycle.stop("uncaught error", EXIT_CODES.failure);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  watchNpm(process, () => machine.lifecycle.stop("npm has exited"));
  parent.onGone(() => {
    machine.hurry(ORPHAN_DRAIN_MS);
    machine.lifecycle.stop("the supervisor has exited");
  });
}
