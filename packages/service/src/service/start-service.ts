// Starts a service: databases, then schedules, then the listener.
import { createEngine, createServer, type Server } from "@platform/http1";
import { createBearerGuard } from "@platform/kernel/http-parts";
import { createConfiguredVerifier, followRevocations } from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import { RequestHandler } from "../http/handler.ts";
import { RequestObserver } from "../http/observer.ts";
import { ServedRoute } from "../http/served-route.ts";
import { Sockets } from "../http/sockets.ts";
import { LeaseTable } from "../schedule/lease-table.ts";
import { claimReplica, createReplica, type Replica } from "@platform/kernel/files";
import { Scheduler } from "../schedule/scheduler.ts";
import { createOwnPaths } from "./own-paths.ts";
import type { Service } from "./service.ts";
import type { Telemetry } from "./telemetry.ts";

/** Options of {@link startService}. */
export interface StartOptions {
  readonly service: Service;
  readonly name: string;
  readonly version: string;
  readonly telemetry: Telemetry;
  readonly lifecycle: Pick<Lifecycle, "onDrain" | "reportListener" | "stopping">;
  /** True if the listening socket is shared with other processes of a cluster. */
  readonly isShared?: boolean;
}

/** A running service. */
export interface StartedService {
  readonly port: number;
  readonly scheduler: Scheduler;
}

/** Time for closing connections at the end of the drain. */
const CLIENT_GRACE_MS = 1_000;

/** New connections whose request is on its way are served: nothing is refused while another process takes over. */
const IDLE_MS = 300;

/** Starts all parts; when this resolves, the service accepts requests. Stopping is registered with the lifecycle. */
export async function startService(options: StartOptions): Promise<StartedService> {
  const { service, telemetry, lifecycle } = options;
  const { health } = telemetry;
  lifecycle.onDrain("telemetry", () => telemetry.close(), "telemetry");
  await openDatabases(options);
  const scheduler = await startScheduler(options);
  const { handler, sockets } = createHandler(options);
  const { clock } = service.environment;
  const engine = createEngine({ now: () => clock.monotonicMs() });
  const server = createServer({
    engine,
    handler: handler.handle,
    limits: { bodyBytesMax: service.serverSettings.bodyBytesMax },
    onFault: (fault) => telemetry.log.debug("connection fault", { fault }),
    onHandlerError: (error) => telemetry.log.error("request failed", { error }),
  });
  lifecycle.onDrain(
    "listener",
    async (context) => {
      health.setState("draining");
      const deadlineMs = Math.max(0, context.remainingMs() - CLIENT_GRACE_MS);
      const drained = server.drain(deadlineMs, deadlineMs, Math.min(IDLE_MS, deadlineMs));
      handler.endStreams();
      await Promise.all([drained, sockets.close()]);
      await handler.close();
      engine.close();
    },
    "listeners",
  );
  const port = await listen(server, options);
  health.setState("ready");
  return { port, scheduler };
}

async function openDatabases({ service, telemetry, lifecycle }: StartOptions): Promise<void> {
  for (const database of service.databases) {
    lifecycle.onDrain(`database ${database.name}`, () => database.close(), "database");
    await database.open();
    telemetry.health.addCheck(`database ${database.name}`, () => database.check());
  }
}

async function startScheduler(options: StartOptions): Promise<Scheduler> {
  const { service, telemetry, lifecycle } = options;
  const [database] = service.databases;
  const { schedules, environment } = service;
  if (schedules.length > 0 && database === undefined) {
    telemetry.log.warn("schedules run on every replica: declare a database to share them");
  }
  const replica = schedules.length === 0 ? createReplica() : openReplica(options);
  const scheduler = new Scheduler({
    schedules,
    leases: database === undefined ? undefined : new LeaseTable(database, replica.id),
    clock: environment.clock,
    log: telemetry.log,
    onRun: (schedule, outcome, ms) => telemetry.countRun(schedule.name, outcome, ms),
  });
  lifecycle.onDrain("schedules", async () => {
    await scheduler.stop();
    replica.release();
  });
  await scheduler.start();
  return scheduler;
}

function openReplica({ service, telemetry }: StartOptions): Replica {
  const { databases, environment, settings } = service;
  if (databases.length === 0 || environment.inMemory) return createReplica();
  return claimReplica(settings.data, (error) =>
    telemetry.log.info("schedules: the data folder cannot keep the identity of this replica", {
      error,
      effect: "if it dies during a run, the schedule pauses for 10 seconds",
    }),
  );
}

function createHandler(options: StartOptions): { handler: RequestHandler; sockets: Sockets } {
  const { service, name, version, telemetry, lifecycle } = options;
  const { settings, serverSettings, environment } = service;
  const { log, metrics, tracer, health } = telemetry;
  const { clock } = environment;
  const followed = followRevocations({ config: settings, clock, log, metrics });
  lifecycle.onDrain("revocations", () => followed.stop());
  health.addWarning("revocations", followed.describe);
  const { revocations } = followed;
  const verifier = createConfiguredVerifier({ config: settings, revocations, clock, log });
  const sockets = new Sockets(log);
  const handler = new RequestHandler({
    routes: service.routes.map((route) => new ServedRoute(route, serverSettings)),
    ownPaths: createOwnPaths({
      name,
      version,
      routes: service.routes,
      health,
      metrics,
      metricsToken: settings.metrics_token,
      hasPublicDocs: serverSettings.publicDocs,
    }),
    guard: createBearerGuard(verifier),
    observer: new RequestObserver(metrics, log),
    sockets,
    clock,
    requestsMax: serverSettings.requestsMax,
    development: service.development,
    tracer,
    log,
  });
  return { handler, sockets };
}

async function listen(server: Server, options: StartOptions): Promise<number> {
  const { service, lifecycle, isShared = false } = options;
  const { port, host } = service.serverSettings;
  try {
    const where = host === undefined ? { port } : { port, host };
    await server.listen({ ...where, exclusive: !isShared });
  } catch (error) {
    const at = service.serverDeclaredAt === "" ? "" : ` at ${service.serverDeclaredAt}`;
    throw await explainListenError(error, { host, port }, `\`port\` of server()${at}, or PORT`);
  }
  const address = server.address() as { host: string; port: number };
  lifecycle.reportListener({ name: "http", ...address });
  return address.port;
}
