// The API of `platform up`: services, schedules and logs, for the web console and for programs.
import { ServiceConsole } from "@platform/console";
import { PlatformError } from "@platform/kernel/errors";
import { AdminFeeds, refuseUpgrade } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, createBearerGuard, listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createConfiguredVerifier, followRevocations } from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { ListenAddress } from "@platform/kernel/config";
import type { Logger } from "@platform/kernel/log";
import { createProcessCollector, MetricRegistry } from "@platform/kernel/metrics";
import { systemClock as clock } from "@platform/kernel/time";
import { createServiceTracer } from "@platform/kernel/trace";
import type { RunningServices } from "../control/running-services.ts";
import type { ScheduleRegistry } from "../control/schedule-registry.ts";
import type { ServiceControl } from "../control/service-control.ts";
import { requireRead } from "./access.ts";
import { describeConditions, describeFigures } from "./conditions.ts";
import { createLogRoutes, readStreamFilter } from "./log-routes.ts";
import { createLogStreams } from "./log-streams.ts";
import { createScheduleRoutes } from "./schedule-routes.ts";
import { createServiceRoutes, type RuntimeHints } from "./service-routes.ts";
import type { RuntimeSettings } from "./settings.ts";

const CONNECTIONS_MAX = 256;
const TRACES_FLUSH_MS = 1_000;

/** Options of {@link startApi}. */
export interface RuntimeApiOptions {
  version: string;
  address: ListenAddress;
  settings: RuntimeSettings;
  /** Token of the operator. */
  token: string;
  states: RunningServices;
  control: ServiceControl;
  schedules: ScheduleRegistry;
  /** The warning about a jump of the system clock. */
  describeClock: () => string | undefined;
  /** Short name of the project in the working directory, if it runs. */
  project: string | undefined;
  hints: RuntimeHints;
  log: {
    /** Path of the file. */
    path: string;
    logger: Logger;
    listen: (listener: (json: string) => void) => () => void;
  };
  lifecycle: Pick<Lifecycle, "onDrain">;
}

/** Starts the API; stopping is registered with the lifecycle. */
export async function startApi(options: RuntimeApiOptions): Promise<void> {
  const { version, settings, states, lifecycle } = options;
  const { logger } = options.log;
  const resource = { service: "runtime", version };
  const registry = new MetricRegistry();
  const process = createProcessCollector(resource);
  registry.collect(process);
  const ids = createIdSource({ clock });
  const endpoint = settings.otlp_endpoint;
  const tracer = createServiceTracer({ resource, endpoint, metrics: registry, ids, clock });
  lifecycle.onDrain("telemetry of the API", async () => {
    process.close();
    await tracer.shutdown(TRACES_FLUSH_MS);
  });
  const onCheckError = (check: string, error: unknown): void =>
    logger.error("health check failed", { check, error });
  const health = new HealthRegistry({ ...resource, onCheckError });

  health.addWarning("clock", options.describeClock);

  const guard = createGuard(options, registry, health);
  const webConsole = new ServiceConsole({
    id: "runtime",
    version,
    features: ["services", "schedules", "logs"],
    credentials: "token",
    guard,
    clock,
  });
  const feeds = new AdminFeeds({
    ...resource,
    registry,
    health,
    clock,
    logger,
    guard: webConsole.guard,
    access: requireRead,
    figures: describeFigures(states),
    conditions: [() => describeConditions(states.state, clock.now())],
  });
  const onChange = (title: string, actor: string): void => feeds.noteChange({ title, actor });
  const findService = createServiceFinder(states);
  const streams = createLogStreams({
    listen: options.log.listen,
    readFilter: (search) => readStreamFilter(search, findService),
    guard: webConsole.guard,
    logger,
  });
  const api = createApi({
    ...resource,
    title: "Runtime",
    description: "Services, schedules and logs of a running `platform up`.",
    guard: webConsole.guard,
    health,
    metrics: registry,
    metricsToken: settings.metrics_token,
    logger,
    tracer,
    clock,
    routes: [
      ...createServiceRoutes({ ...options, onChange }),
      ...createScheduleRoutes(options.schedules, onChange),
      ...createLogRoutes({ path: options.log.path, findService }),
      ...feeds.createRoutes(),
      ...webConsole.createRoutes(),
    ],
  });
  const listener = await listen(options.address, {
    fetch: api.fetch,
    intercept: api.intercept,
    onUpgrade: (request, socket, head) => {
      if (feeds.handleUpgrade(request, socket, head)) return;
      if (streams.handleUpgrade(request, socket, head)) return;
      const error = new PlatformError("not_found", "There is no WebSocket here.");
      refuseUpgrade(socket, request, error);
    },
    connectionsMax: CONNECTIONS_MAX,
    metrics: registry,
  });
  feeds.start();
  health.setState("ready");
  lifecycle.onDrain("API", async (drain) => {
    health.setState("draining");
    await Promise.all([feeds.close(), streams.close()]);
    await listener.close(drain.remainingMs());
  });
}

function createGuard(
  { settings, token, log: { logger }, lifecycle }: RuntimeApiOptions,
  metrics: MetricRegistry,
  health: HealthRegistry,
) {
  const followed = followRevocations({ config: settings, clock, log: logger, metrics });
  lifecycle.onDrain("revocations", () => followed.stop());
  health.addWarning("revocations", followed.describe);
  const { revocations } = followed;
  const shared = { clock, log: logger, revocations };
  const verifier = createConfiguredVerifier({ ...shared, config: settings, operatorToken: token });
  return createBearerGuard(verifier);
}

async function listen(
  address: ListenAddress,
  options: Omit<Parameters<typeof listenHttp>[0], "address">,
) {
  const { host = "::", port } = address;
  return listenHttp({ ...options, address: { host, port } }).catch(async (error: unknown) => {
    throw await explainListenError(error, address, "--runtime-addr");
  });
}

// A name that is not known finds the lines of services of earlier runs.
function createServiceFinder(states: RunningServices) {
  return (word: string): { name: string; label: string } =>
    states.state.services.find(({ name, label }) => name === word || label === word) ?? {
      name: word,
      label: word,
    };
}
