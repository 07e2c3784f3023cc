// Liveness and readiness of one service: a state, named checks with a time bound, and the bodies of the two probes.

/** Where the service stands: only `ready` with all checks passed answers readiness with 200. */
export type HealthState = "starting" | "ready" | "draining";

/**
 * A dependency's check: undefined when all is well, else a short reason. The reason is shown to anyone who asks for
 * `/readyz`: no addresses, no credentials. What is thrown is shown as "failed" only. `signal` fires at the time bound.
 */
export type HealthCheck = (signal: AbortSignal) => Promise<string | undefined> | string | undefined;

/** What one check found. */
export interface CheckReport {
  status: "UP" | "DOWN";
  detail?: string;
}

/** The JSON body of both probes. */
export interface HealthBody {
  status: "UP" | "DOWN";
  service: string;
  version: string;
  /** Present when the status is DOWN: every check by name, `lifecycle` among them when it is the cause. */
  checks?: Record<string, CheckReport>;
  /** Present on readiness when the service takes work, but something needs an operator: a short text by name. */
  warnings?: Record<string, string>;
}

/** A probe's answer. */
export interface HealthAnswer {
  status: 200 | 503;
  body: HealthBody;
}

/** What the registry needs to know. */
export interface HealthOptions {
  service: string;
  version: string;
  /** Time a check may take, in ms. Default 1 000. */
  checkTimeoutMs?: number;
  /** How long one round of checks answers further probes, in ms. Default 500. */
  reuseMs?: number;
  /** Monotonic time in ms; `performance.now` by default. */
  now?: () => number;
  /** Told of what a check threw, which the probe's body withholds. */
  onCheckError?: (name: string, error: unknown) => void;
}

const CHECKS_MAX = 50;

/** The health of one service. It begins as `starting`. */
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

  /** Moves on; a draining service stays draining. */
  setState(state: HealthState): void {
    if (this.#state !== "draining") this.#state = state;
  }

  /** Adds a check to readiness; the returned function removes it. Names are unique; at most 50. */
  addCheck(name: string, check: HealthCheck): () => void {
    if (this.#checks.has(name) || name === "lifecycle") {
      throw new TypeError(`health check ${name} exists already`);
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
   * Adds a source of a warning: undefined when all is well, else a short reason, shown to anyone as those of checks
   * are. A warning does not change readiness. Names are unique; at most 50.
   */
  addWarning(name: string, read: () => string | undefined): void {
    if (this.#warnings.has(name)) throw new TypeError(`health warning ${name} exists already`);
    if (this.#warnings.size >= CHECKS_MAX) throw new TypeError(`too many warnings: ${name}`);
    this.#warnings.set(name, read);
  }

  /** `/healthz`: the process lives and answers. */
  live(): HealthAnswer {
    return this.#up();
  }

  /** `/readyz`: the service takes work. Probes that arrive together share one round of checks. */
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
          resolve(`no answer within ${this.#options.checkTimeoutMs} ms`);
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
