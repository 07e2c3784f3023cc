// Active health checks: requests to targets from the control plane, whose outcome all workers see.
import { request as requestHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { request as requestHttps } from "node:https";
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type {
  HealthCheckSpec,
  RouteSpec,
  SharedTargetState,
  TargetSpec,
} from "../shared-state/index.ts";
import { createCheckedLookup } from "../upstream/checked-lookup.ts";
import type { RoutePlanner } from "../control/planner.ts";

const TICK_MS = 100;
/** Checks in flight; further ones wait for the next tick. */
const ACTIVE_MAX = 64;

/** Options of {@link HealthChecks}. */
export interface HealthChecksOptions {
  planner: RoutePlanner;
  targets: SharedTargetState;
  /** Milliseconds of the clock that all workers share. */
  readNowMs: () => number;
  log: (level: "info" | "warn", msg: string, fields: Record<string, string | number>) => void;
}

interface Check {
  target: TargetSpec;
  spec: HealthCheckSpec;
  tls: RouteSpec["upstreamTls"];
  networks: readonly string[] | undefined;
  isHealthy: boolean;
  /** Consecutive results that contradict `isHealthy`. */
  streak: number;
  dueMs: number;
  isActive: boolean;
}

/** The checks of one gateway. {@link stop} ends them. */
export class HealthChecks implements Collector {
  readonly name = "health_checks";
  readonly #options: HealthChecksOptions;
  readonly #timer: RepeatingTimer;
  #checks = new Map<string, Check>();
  #version = -1;
  #active = 0;
  #passed = 0;
  #failed = 0;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#timer = every(
      TICK_MS,
      () => this.#tick(),
      (error) => options.log("warn", "a health check failed inside", { error: String(error) }),
    );
  }

  /** Ends all checks. */
  stop(): Promise<void> {
    return this.#timer.stop();
  }

  collect(): MetricFamily[] {
    const count = (result: string, value: number) => ({
      labels: [["result", result]] as const,
      value,
    });
    return [
      {
        name: "platform_gate_health_checks_total",
        help: "Active health checks.",
        type: "counter",
        samples: [count("passed", this.#passed), count("failed", this.#failed)],
      },
    ];
  }

  #tick(): void {
    const { planner, readNowMs } = this.#options;
    if (planner.version !== this.#version) {
      this.#version = planner.version;
      this.#follow(planner.listSpecs());
    }
    const nowMs = readNowMs();
    for (const check of this.#checks.values()) {
      if (check.isActive || nowMs < check.dueMs) continue;
      if (this.#active >= ACTIVE_MAX) return;
      void this.#run(check, nowMs);
    }
  }

  // An unchanged check of a target keeps its results.
  #follow(specs: readonly RouteSpec[]): void {
    const before = this.#checks;
    const next = new Map<string, Check>();
    for (const { healthCheck: spec, targets, upstreamTls: tls, confined } of specs) {
      if (spec === undefined) continue;
      for (const target of targets) {
        const networks = confined?.networks;
        const key = `${target.slot} ${JSON.stringify(spec)} ${networks?.join() ?? ""}`;
        const fresh = {
          target,
          spec,
          tls,
          networks,
          isHealthy: true,
          streak: 0,
          dueMs: 0,
          isActive: false,
        };
        next.set(key, before.get(key) ?? fresh);
      }
    }
    this.#checks = next;
    for (const [key, { target }] of before) if (!next.has(key)) this.#show(target.slot);
  }

  async #run(check: Check, nowMs: number): Promise<void> {
    check.isActive = true;
    check.dueMs = nowMs + check.spec.intervalMs;
    this.#active++;
    const fault = await probe(check);
    this.#active--;
    check.isActive = false;
    if (fault === undefined) this.#passed++;
    else this.#failed++;
    this.#judge(check, fault);
  }

  #judge(check: Check, fault: string | undefined): void {
    const isPassed = fault === undefined;
    if (isPassed === check.isHealthy) {
      check.streak = 0;
      return;
    }
    const { healthyAfter, unhealthyAfter } = check.spec;
    check.streak++;
    if (check.streak < (isPassed ? healthyAfter : unhealthyAfter)) return;
    check.isHealthy = isPassed;
    check.streak = 0;
    this.#show(check.target.slot);
    const { url } = check.target;
    if (isPassed) this.#options.log("info", "upstream passes its health checks", { upstream: url });
    else this.#options.log("warn", "upstream fails its health checks", { upstream: url, fault });
  }

  // A target is down if one of its checks fails.
  #show(slot: number): void {
    const { targets, readNowMs } = this.#options;
    let isDown = false;
    for (const check of this.#checks.values()) {
      if (check.target.slot === slot && !check.isHealthy) isDown = true;
    }
    targets.setDown(slot, isDown, readNowMs());
  }
}

/** One request; returns what was wrong, undefined if the target is healthy. */
function probe({ target, spec, tls, networks }: Check): Promise<string | undefined> {
  const { protocol, hostname, port } = new URL(target.url);
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  const isSecure = protocol === "https:";
  const options: RequestOptions & { servername?: string } = {
    host,
    port: port === "" ? (isSecure ? 443 : 80) : Number(port),
    path: spec.path,
    agent: false,
    ...(networks === undefined ? {} : { lookup: createCheckedLookup(networks) }),
    signal: AbortSignal.timeout(spec.timeoutMs),
    headers: { "User-Agent": "platform-gate", Connection: "close" },
    ...(tls?.caPem === undefined ? {} : { ca: tls.caPem }),
    ...(tls?.certPem === undefined ? {} : { cert: tls.certPem, key: tls.keyPem }),
  };
  return new Promise((resolve) => {
    const onResponse = (response: IncomingMessage): void => {
      const { statusCode = 0 } = response;
      response.on("error", () => undefined);
      response.destroy();
      resolve(statusCode >= 200 && statusCode < 400 ? undefined : `status ${statusCode}`);
    };
    const sent = isSecure ? requestHttps(options, onResponse) : requestHttp(options, onResponse);
    sent.on("error", (error) => resolve(error.message));
    // Node reports a 101 as an upgrade, and without a listener only as the end of the connection.
    sent.on("close", () => resolve("no response"));
    sent.end();
  });
}
