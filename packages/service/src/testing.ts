// The declared service inside a test: a free port, databases in memory, a clock that moves by hand.
import { createEmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { formatLogLine } from "@platform/kernel/log";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { declared } from "./service/declared.ts";
import { startService } from "./service/start-service.ts";
import { createTelemetry } from "./service/telemetry.ts";

/** Options of {@link startTestService}. */
export interface TestOptions {
  /** Environment variables, such as PLATFORM_JWT_SECRET; those of the process are not used. */
  env?: Readonly<Record<string, string>>;
  /** Initial time; default 2030-01-01T00:00:00Z. */
  now?: Date;
  /** True keeps databases in the files and servers that `env` names; by default they are in memory. */
  keepsData?: boolean;
}

/** A service under test. */
export interface TestService {
  /** For example `http://127.0.0.1:43210`. */
  readonly url: string;
  readonly clock: ManualClock;
  /** Log lines as objects, oldest first. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** Requests a path of the service; redirects are returned. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Runs the schedules that are due, and waits for them. */
  runSchedules(): Promise<void>;
  /** Drains and stops the service. */
  stop(): Promise<void>;
}

const START = Date.UTC(2030, 0, 1);
const DRAIN_MS = 2_000;

/**
 * Starts the service that the imported files declare.
 *
 * ```ts
 * import "./main.service.ts";
 * const app = await startTestService();
 * test.after(() => app.stop());
 * const answer = await app.fetch("/notes/1");
 * ```
 */
export async function startTestService(options: TestOptions = {}): Promise<TestService> {
  const { env = {}, now = new Date(START), keepsData = false } = options;
  const clock = createManualClock(now.getTime());
  const log: Record<string, unknown>[] = [];
  const settled = { PORT: "0", HOST: "127.0.0.1", ...env };
  declared.environment = { env: settled, clock, inMemory: !keepsData };
  const { caches, settings } = declared;
  const identity = { name: settings.name ?? "test", version: "0.0.0" };
  const writeLog = (line: string): void => {
    const event = JSON.parse(line) as Record<string, unknown>;
    log.push(event);
    // A test that expects another answer sees why.
    if (event["frame"] !== undefined) process.stderr.write(formatLogLine(event, false));
  };
  const telemetry = createTelemetry({
    ...identity,
    settings,
    caches,
    clock,
    writeLog,
    isReporting: true,
  });
  const lifecycle = createEmbeddedLifecycle(telemetry.log);
  const base = { service: declared, ...identity, telemetry, lifecycle };
  const { port, scheduler } = await startService(base).catch(async (error: unknown) => {
    await lifecycle.close(DRAIN_MS);
    throw error;
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    clock,
    log,
    fetch: (path, init = {}) => fetch(new URL(path, url), { redirect: "manual", ...init }),
    runSchedules: () => scheduler.runDue(),
    stop: () => lifecycle.close(DRAIN_MS),
  };
}
