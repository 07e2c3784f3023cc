// Liveness and readiness of a service: its state, named checks with a timeout, and the probe bodies.
import { z } from "zod";

export { describeFullDisk, FULL_DISK } from "./full-disk.ts";

/** State of the service. Readiness requires `ready` and all checks to pass. */
export type HealthState = "starting" | "ready" | "draining";

/**
 * Check of a dependency: undefined if it passes, otherwise a short reason. The reason is public (`/readyz`): no
 * addresses, no credentials. Thrown errors are shown as "failed". `signal` aborts at the timeout.
 */
export type HealthCheck = (signal: AbortSignal) => Promise<string | undefined> | string | undefined;

const upOrDown = z.enum(["UP", "DOWN"]);

/** The JSON body of both probes. */
export const healthBody = z
  .object({
    status: upOrDown,
    service: z.string(),
    version: z.string(),
    checks: z
      .record(z.string(), z.object({ status: upOrDown, detail: z.string().optional() }))
      .optional()
      .describe("If the status is DOWN: all checks by name, and `lifecycle` if it is the cause."),
    warnings: z
      .record(z.string(), z.string())
      .optional()
      .describe(
        "On readiness, if the service is ready but needs an operator's attention: short texts by name.",
      ),
  })
  .meta({ id: "Health" });

/** The JSON body of both probes. */
export type HealthBody = z.infer<typeof healthBody>;

/** Result of a check. */
export type CheckReport = NonNullable<HealthBody["checks"]>[string];

/** Response of a probe. */
export interface HealthAnswer {
  status: 200 | 503;
  body: HealthBody;
}

/** Options of {@link HealthRegistry}. */
export interface HealthOptions {
  service: string;
  version: string;
  /** Timeout of a check in ms. Default 1 000. */
  checkTimeoutMs?: number;
  /** Time for which the results of checks are reused, in ms. Default 500. */
  reuseMs?: number;
  /** Monotonic time in ms; `performance.now` by default. */
  now?: () => number;
  /** Called with errors that a check throws; the response does not contain them. */
  onCheckError?: (name: string, error: unknown) => void;
}

const CHECKS_MAX = 50;

/** Health of a service. The initial state is `starting`. */
export class HealthRegistry {
  readonly #options: Required<Omit<HealthOptions, "onCheckError">>;
  readonly #onCheckError: (name: string, error: unknown) => void;
  readonly #checks = new Map<string, HealthCheck>();
  readonly #warnings = new Map<string, () => string | undefined>();
  #state: HealthState = "starting";
  #round: { startedAt: number; reports: Promise<[string, CheckReport][]> } | undefined;

  constructor(options: HealthOptions) {
    const { onCheckError = () => {}, ...rest } = options;
    this.#onCheckError = onCheckError;
    this.#options = { checkTimeoutMs: 1_000, reuseMs: 500, now: () => performance.now(), ...rest };
  }

  get state(): HealthState {
    return this.#state;
  }

  /** Changes the state; `draining` is final. */
  setState(state: HealthState): void {
    if (this.#state !== "draining") this.#state = state;
  }

  /** Adds a check to readiness; the returned function removes it. Names are unique; at most 50 checks. */
  addCheck(name: string, check: HealthCheck): () => void {
    if (this.#checks.has(name) || name === "lifecycle") {
      throw new TypeError(`duplicate health check ${name}`);
    }
    if (this.#checks.size >= CHECKS_MAX) throw new TypeError(`too many health checks: ${name}`);
    this.#checks.set(name, check);
    this.#round = undefined;
    return () => {
      this.#checks.delete(name);
      this.#round = undefined;
    };
  }

  /**
   * Adds a warning: `read` returns undefined or a short reason, which is public like those of checks. Warnings do not
   * change readiness. Names are unique; at most 50 warnings.
   */
  addWarning(name: string, read: () => string | undefined): void {
    if (this.#warnings.has(name)) throw new TypeError(`duplicate health warning ${name}`);
    if (this.#warnings.size >= CHECKS_MAX) throw new TypeError(`too many warnings: ${name}`);
    this.#warnings.set(name, read);
  }

  /** `/healthz`: the process responds. */
  live(): HealthAnswer {
    return this.#up();
  }

  /** `/readyz`: the service accepts requests. Concurrent probes share one round of checks. */
  async ready(): Promise<HealthAnswer> {
    if (this.#state !== "ready") {
      return this.#down([["lifecycle", { status: "DOWN", detail: this.#state }]]);
    }
    if (this.#checks.size === 0) return this.#upWithWarnings();
    const at = this.#options.now();
    if (this.#round === undefined || at - this.#round.startedAt >= this.#options.reuseMs) {
      const checks = Array.from(this.#checks, (entry) => this.#run(...entry));
      this.#round = { startedAt: at, reports: Promise.all(checks) };
    }
    const reports = await this.#round.reports;
    return reports.every(([, report]) => report.status === "UP")
      ? this.#upWithWarnings()
      : this.#down(reports);
  }

  async #run(name: string, check: HealthCheck): Promise<[string, CheckReport]> {
    const abort = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    try {
      const late = new Promise<string>((resolve) => {
        timer = setTimeout(() => {
          abort.abort();
          resolve(`no response within ${this.#options.checkTimeoutMs} ms`);
        }, this.#options.checkTimeoutMs);
      });
      const detail = await Promise.race([check(abort.signal), late]);
      return [name, detail === undefined ? { status: "UP" } : { status: "DOWN", detail }];
    } catch (error) {
      this.#onCheckError(name, error);
      return [name, { status: "DOWN", detail: "failed" }];
    } finally {
      clearTimeout(timer);
    }
  }

  #up(): HealthAnswer {
    const { service, version } = this.#options;
    return { status: 200, body: { status: "UP", service, version } };
  }

  #upWithWarnings(): HealthAnswer {
    const warnings: Record<string, string> = {};
    for (const [name, read] of this.#warnings) {
      const text = read();
      if (text !== undefined) warnings[name] = text;
    }
    const { status, body } = this.#up();
    return { status, body: Object.keys(warnings).length === 0 ? body : { ...body, warnings } };
  }

  #down(reports: [string, CheckReport][]): HealthAnswer {
    const { service, version } = this.#options;
    const checks = Object.fromEntries(reports);
    return { status: 503, body: { status: "DOWN", service, version, checks } };
  }
}
