// Starts a service: databases, then schedules, then the listener.
import { randomBytes } from "node:crypto";
import { createEngine, createServer, type Server } from "@platform/http1";
import { createBearerGuard } from "@platform/kernel/http-parts";
import { createConfiguredVerifier, followRevocations } from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import { followShared } from "@platform/kernel/secrets";
import { RequestHandler } from "../http/handler.ts";
import { RequestObserver } from "../http/observer.ts";
import { ServedRoute } from "../http/served-route.ts";
import { Sockets } from "../http/sockets.ts";
import { LeaseTable } from "../schedule/lease-table.ts";
import { claimReplica, createReplica, type Replica } from "@platform/kernel/files";
import { Scheduler } from "../schedule/scheduler.ts";
import {
  createProofs,
  listDeclared,
  readServiceRules,
  type ServiceRules,
} from "./gateway-rules.ts";
import { createOwnPaths } from "./own-paths.ts";
import type { Service } from "./service.ts";
import type { Telemetry } from "./telemetry.ts";

/** Options of {@link startService}. */
export interface StartOptions {
  readonly service: Service;
  readonly name: string;
  readonly version: string;
  readonly telemetry: Telemetry;
  readonly lifecycle: Pick<Lifecycle, "followSecret" | "onDrain" | "reportListener" | "stopping">;
  /** True if the listening socket is shared with other processes of a cluster. */
  readonly isShared?: boolean;
  /** Port at which the platform's gateway reaches the service; undefined without a gateway. */
  readonly gateway?: GatewayPlace | undefined;
  /** The rules of the service, if they were read already. */
  readonly rules?: ServiceRules | undefined;
}

/** The port of the platform's gateway, and the secret with which it proves that it has applied the rules. */
export interface GatewayPlace {
  readonly port: number;
  readonly secret: string;
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
  const rules = options.rules ?? (await readServiceRules(service));
  await openDatabases(options);
  const scheduler = await startScheduler(options);
  const { handler, sockets } = createHandler({ ...options, rules });
  warnOfRules({ ...options, rules });
  const { clock } = service.environment;
  const engine = createEngine({ now: () => clock.monotonicMs() });
  const open = (): Server =>
    createServer({
      engine,
      handler: handler.handle,
      limits: { bodyBytesMax: service.serverSettings.bodyBytesMax },
      onFault: (fault) => telemetry.log.debug("connection fault", { fault }),
      onHandlerError: (error) => telemetry.log.error("request failed", { error }),
    });
  const server = open();
  const behind = options.gateway === undefined ? undefined : open();
  lifecycle.onDrain(
    "listener",
    async (context) => {
      health.setState("draining");
      const deadlineMs = Math.max(0, context.remainingMs() - CLIENT_GRACE_MS);
      const drained = [server, ...(behind === undefined ? [] : [behind])].map((one) =>
        one.drain(deadlineMs, deadlineMs, Math.min(IDLE_MS, deadlineMs)),
      );
      handler.endStreams();
      await Promise.all([...drained, sockets.close()]);
      await handler.close();
      engine.close();
    },
    "listeners",
  );
  const { gateway } = options;
  await behind?.listen({ port: gateway!.port, host: "127.0.0.1", exclusive: false });
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
  const shared = followShared(settings, (key, value) => lifecycle.followSecret(key, value));
  const config = { ...settings, ...shared };
  const followed = followRevocations({ config, clock, log, metrics });
  lifecycle.onDrain("revocations", () => followed.stop());
  health.addWarning("revocations", followed.describe);
  const { revocations } = followed;
  const verifier = createConfiguredVerifier({ config, revocations, clock, log });
  const sockets = new Sockets(log);
  const secret = options.gateway?.secret ?? createSecret();
  const isExternal = settings.gateway === "external";
  const findProof = createProofs(isExternal ? undefined : options.rules, secret);
  const handler = new RequestHandler({
    routes: service.routes.map((route) => new ServedRoute(route, serverSettings, findProof(route))),
    ownPaths: createOwnPaths({
      name,
      version,
      routes: service.routes,
      health,
      metrics,
      metricsToken: config.metrics_token,
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

/** Rules that nobody applies must not go unnoticed. */
function warnOfRules({ service, telemetry, rules, gateway }: StartOptions): void {
  const { settings, environment } = service;
  if (rules === undefined || gateway !== undefined || environment.inMemory) return;
  const { log } = telemetry;
  const declared = listDeclared(rules);
  if (settings.gateway === "external") {
    log.info("the gateway rules of this service are those of another gateway", { declared });
    return;
  }
  const restricts = rules.restricts || rules.endpoints.some((one) => one.restricts);
  log.warn("the gateway rules of this service are not applied: there is no gateway", {
    declared,
    effect: restricts
      ? "routes whose rules restrict access admit only programs on this machine"
      : "there are no rate limits, no response cache and no CORS fields",
    remedy: "platform up runs it behind the gateway",
  });
}

/** The secret of a service without a gateway, which no request has. */
function createSecret(): string {
  return randomBytes(16).toString("base64url");
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
