// The drain: stops the parts of a service in one order, whatever the order in which they were started.
import type { Logger } from "../log/index.ts";

// Time after the deadline to close remaining connections.
const CUT_GRACE_MS = 1000;

/**
 * Phases of the drain. Live streams end first, because listeners wait for their connections; listeners close while the parts
 * behind them still answer; traces and metrics of all of them are sent before the telemetry ends, and the database is closed
 * when nobody uses it.
 */
const DRAIN_PHASES = ["streams", "listeners", "parts", "telemetry", "database"] as const;

/** A phase of the drain. */
export type DrainPhase = (typeof DRAIN_PHASES)[number];

/** Context of a drain hook. */
interface DrainContext {
  /** Aborted at the deadline: abort remaining work. */
  deadline: AbortSignal;
  /** Milliseconds until the deadline, at least 0. */
  remainingMs(): number;
}

/** Stops a component; resolves when it has stopped. */
export type DrainHook = (context: DrainContext) => void | Promise<void>;

interface Part {
  name: string;
  hook: DrainHook;
}

/** The hooks of a service. */
export class DrainHooks {
  readonly #phases = new Map<DrainPhase, Part[]>(DRAIN_PHASES.map((phase) => [phase, []]));

  /** Adds a hook; also during a drain, by a start that is still running. */
  add(name: string, hook: DrainHook, phase: DrainPhase = "parts"): void {
    this.#phases.get(phase)!.push({ name, hook });
  }

  /**
   * Runs all hooks, phase by phase, the last added one first. Resolves to false if one failed, or the time and `graceMs`
   * after it, in which remaining work is aborted, did not suffice.
   */
  async run(timeoutMs: number, logger: Logger, graceMs = CUT_GRACE_MS): Promise<boolean> {
    const deadline = new AbortController();
    const endsMs = performance.now() + timeoutMs;
    const expired = Promise.withResolvers<"late">();
    let grace: NodeJS.Timeout | undefined;
    const cut = setTimeout(() => {
      logger.warn("drain deadline exceeded: aborting remaining work", {
        drain_timeout_ms: timeoutMs,
      });
      deadline.abort();
      grace = setTimeout(() => expired.resolve("late"), graceMs);
    }, timeoutMs);
    const context: DrainContext = {
      deadline: deadline.signal,
      remainingMs: () => Math.max(0, endsMs - performance.now()),
    };
    let inTime = true;
    for (let part = this.#next(); part !== undefined; part = this.#next()) {
      const { name, hook } = part;
      try {
        const outcome = await Promise.race([
          Promise.resolve(hook(context)).then(() => "done" as const),
          expired.promise,
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
    clearTimeout(grace);
    return inTime;
  }

  #next(): Part | undefined {
    for (const parts of this.#phases.values()) {
      const part = parts.pop();
      if (part !== undefined) return part;
    }
    return undefined;
  }
}
