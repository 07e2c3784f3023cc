// The API of `platform up`: services, schedules and logs, for the web console and for programs.
import { openService, type ServiceLifecycle } from "@platform/chassis";
import type { ListenAddress } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import { refuseUpgrade } from "@platform/kernel/feeds";
import type { ApiRoute } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { ProjectSpans } from "../control/project-spans.ts";
import type { RunningServices } from "../control/running-services.ts";
import type { ScheduleRegistry } from "../control/schedule-registry.ts";
import type { CredentialControl } from "../control/credential-control.ts";
import type { ServiceControl } from "../control/service-control.ts";
import { DataService } from "../data/data-service.ts";
import { createHidden } from "../data/hidden-columns.ts";
import type { Projects } from "../projects/projects.ts";
import { RUNTIME_TOKEN } from "../services/runtime.ts";
import { requireRead } from "./access.ts";
import type { Target } from "../client/target.ts";
import { createApplicationRoutes } from "./application-routes.ts";
import { createCredentialRoutes } from "./credential-routes.ts";
import { createDataAuditRoutes } from "./data-audit-routes.ts";
import { createDataChangeRoutes } from "./data-change-routes.ts";
import { createDataRoutes } from "./data-routes.ts";
import { describeConditions, describeFigures } from "./conditions.ts";
import { SampleTunnel } from "../client/sample-tunnel.ts";
import { createEnvironmentRoutes } from "./environment-routes.ts";
import { createFirstStepRoutes } from "./first-step-routes.ts";
import { createLogRoutes, readStreamFilter } from "./log-routes.ts";
import { createLogStreams } from "./log-streams.ts";
import { createProjectRoutes } from "./project-routes.ts";
import { createQueryRoutes } from "./query-routes.ts";
import { createScheduleRoutes } from "./schedule-routes.ts";
import { createServiceRoutes, type RuntimeHints } from "./service-routes.ts";
import { createTryRoutes } from "./try-routes.ts";
import { collectPlatform } from "./metrics.ts";
import type { RuntimeSettings } from "./settings.ts";

const CONNECTIONS_MAX = 256;

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
  /** Time of the last complete backup, epoch ms. */
  readLastBackup: () => number | undefined;
  projects: Projects;
  spans: Pick<ProjectSpans, "find">;
  /** The platform as a command finds it. */
  getTarget: () => Target;
  dataDir: string;
  /** True if the platform has a domain: its console is for others as well. */
  isPublic: boolean;
  credentials: CredentialControl;
  hints: RuntimeHints;
  log: {
    /** Path of the file. */
    path: string;
    logger: Logger;
    listen: (listener: (json: string) => void) => () => void;
  };
  lifecycle: ServiceLifecycle;
}

/** Starts the API; stopping is registered with the lifecycle. */
export async function startApi(options: RuntimeApiOptions): Promise<void> {
  const { version, settings, states, lifecycle, spans } = options;
  const operatorToken = lifecycle.followSecret(RUNTIME_TOKEN, options.token);
  const { logger: log } = options.log;
  const secured = { config: settings, operatorToken, log, lifecycle };
  const service = openService({ name: "runtime", version, ...secured });
  service.health.addWarning("clock", options.describeClock);
  collectPlatform(service.metrics, {
    readServices: () => states.state.services,
    readLastBackup: options.readLastBackup,
  });
  const operation = service.openOperation({
    console: { features: listFeatures(states), credentials: "token" },
    access: requireRead,
    figures: describeFigures(states),
    findOtherSpans: async (traceId) => spans.find(traceId),
    conditions: [() => describeConditions(states.state, service.clock.now())],
  });
  const { feeds, guard } = operation;
  const onChange = (title: string, actor: string): void => feeds.noteChange({ title, actor });
  const findService = createServiceFinder(states);
  const readFilter = (search: URLSearchParams) => readStreamFilter(search, findService);
  const { listen } = options.log;
  const streams = createLogStreams({ listen, readFilter, guard, logger: log });
  lifecycle.onDrain("joined terminals", () => options.projects.end(), "streams");
  lifecycle.onDrain("log streams", () => streams.close(), "streams");
  const data = createDataService(options, service.clock);
  lifecycle.onDrain("data of projects", () => data.close());
  const api = service.createApi({
    title: "Runtime",
    description:
      "Services, projects with their data, schedules and logs of a running `platform up`.",
    operation,
    routes: [
      ...createServiceRoutes({ ...options, onChange }),
      ...createProjectRoutes({ ...options, listen: options.log.listen, onChange }),
      ...createRoutesOfData(data, options.projects),
      ...createRoutesOfDevelopers(options, { data, clock: service.clock }, onChange),
      ...createScheduleRoutes(options.schedules, onChange),
      ...createCredentialRoutes(options.credentials, onChange),
      ...createLogRoutes({ path: options.log.path, findService }),
    ],
  });
  await service.serve({
    address: options.address,
    setting: "--runtime-addr",
    fetch: api.fetch,
    intercept: api.intercept,
    onUpgrade: (request, socket, head) => {
      if (feeds.handleUpgrade(request, socket, head)) return;
      if (streams.handleUpgrade(request, socket, head)) return;
      const error = new PlatformError("not_found", "There is no WebSocket here.");
      refuseUpgrade(socket, request, error);
    },
    connectionsMax: CONNECTIONS_MAX,
  });
  service.setReady();
}

// Applications are clients of identity.
function listFeatures({ state }: RunningServices): string[] {
  const hasIdentity = state.services.some(({ name }) => name === "auth");
  const features = ["services", "schedules", "logs", "projects"];
  return hasIdentity ? [...features, "applications"] : features;
}

function createRoutesOfDevelopers(
  { getTarget, projects, lifecycle, dataDir }: RuntimeApiOptions,
  { data, clock }: { data: DataService; clock: Clock },
  onChange: (title: string, actor: string) => void,
): ApiRoute[] {
  const tunnel = new SampleTunnel(getTarget);
  lifecycle.onDrain("tunnel to the sample", () => tunnel.close());
  return [
    ...createApplicationRoutes({ getTarget, onChange }),
    ...createFirstStepRoutes({ getTarget, tunnel, onChange }),
    ...createTryRoutes({ getTarget, projects, data }),
    ...createEnvironmentRoutes({ projects, dataDir, clock, data, onChange }),
  ];
}

function createRoutesOfData(data: DataService, projects: Projects): ApiRoute[] {
  return [
    ...createDataRoutes(data),
    ...createDataChangeRoutes(data),
    ...createQueryRoutes(data, (name) => projects.locateData(name).folder),
    ...createDataAuditRoutes(data),
  ];
}

function createDataService(
  { projects, dataDir, isPublic, settings }: RuntimeApiOptions,
  clock: Clock,
): DataService {
  return new DataService({
    findPlace: (project) => projects.locateData(project),
    dataDir,
    clock,
    mode: settings.console_data ?? (isPublic ? "read" : "edit"),
    isHidden: createHidden(settings.console_data_hidden),
    keepsValues: settings.console_data_audit_values,
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
