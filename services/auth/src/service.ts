// Starts the identity service.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { clearDatabaseCopies, createBackupRoute } from "@platform/kernel/backup";
import { openDatabase } from "@platform/kernel/db";
import { AdminFeeds } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import {
  listenHttp,
  type Api,
  type ApiRoute,
  type Guard,
  type HttpListener,
} from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import {
  createHttpMetrics,
  createProcessCollector,
  MetricRegistry,
} from "@platform/kernel/metrics";
import { sweepEvery, systemClock, type Clock } from "@platform/kernel/time";
import { createServiceTracer } from "@platform/kernel/trace";
import { createAccountRoutes } from "./api/account-routes.ts";
import { createAuditRoutes } from "./api/audit-routes.ts";
import { createClientRoutes } from "./api/client-routes.ts";
import { createConsole } from "./api/console.ts";
import { createAuthApi, METRICS_ACCESS } from "./api/create-api.ts";
import { createMfaRoutes } from "./api/mfa-routes.ts";
import { createPasskeyRoutes } from "./api/passkey-routes.ts";
import { Identification } from "./api/principal.ts";
import { createRbacRoutes } from "./api/rbac-routes.ts";
import { createSessionRoutes } from "./api/session-routes.ts";
import { createUserRoutes } from "./api/user-routes.ts";
import { VERSION, type AuthConfig } from "./config.ts";
import { describeState, takeAuthSnapshot } from "./backup/backup.ts";
import { DATA_FORMAT, migrateAll, type AuthDatabase, type AuthTables } from "./database/schema.ts";
import {
  createDomain,
  createStores,
  listServiceNames,
  startOAuth,
  type Domain,
  type Stores,
} from "./domain.ts";
import { KeyRing } from "./key/key-ring.ts";
import { createSecretBox } from "@platform/kernel/secrets";
import { loadSecrets } from "./key/secrets.ts";
import { createAuthMetrics, createFigures } from "./metrics.ts";
import { loadBrand } from "./pages/brand.ts";
import { createCorePages } from "./pages/core-pages.ts";
import { OWN_ROUTES } from "./oauth/core/routes.ts";
import { createFrame, createPages } from "./pages/create-pages.ts";
import { provideCliClient, provideConsoleClient, readBootstrapFile } from "./sign-in/bootstrap.ts";
import { ensureAdministrator } from "./sign-in/first-administrator.ts";
import type { PasswordCost } from "./sign-in/password-hasher.ts";
import { ClientAddress } from "./web/client-address.ts";
import { Dispatcher } from "./web/dispatcher.ts";

const TRACES_FLUSH_MS = 1000;
const SWEEP_MS = 60_000;

/** Options of `startAuth`. */
export interface AuthOptions {
  config: AuthConfig;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "reportListener" | "stopping">;
  clock?: Clock;
  /** Cost of hashing a password. Default OWASP's; tests use less. */
  passwordCost?: PasswordCost;
}

/** A running service. */
export interface AuthService {
  /** Issuer and base of all links. */
  readonly publicUrl: string;
  /** The address of the listener. */
  readonly url: string;
  readonly database: AuthDatabase;
}

/** Starts the service; when this resolves, it accepts requests. */
export async function startAuth(options: AuthOptions): Promise<AuthService> {
  const { config, log, lifecycle, clock = systemClock } = options;
  // Before anything is opened: an illegible colour stops the start.
  const look = loadBrand(config);
  const database = openAuthDatabase(config, log);
  lifecycle.onDrain("database", () => database.close());
  await migrateAll(database, clock.now());
  const secrets = await loadSecrets(config, database);

  const box = createSecretBox("auth", secrets.encryption);
  const keys = new KeyRing({
    database,
    box,
    clock,
    log,
    algorithm: config.jwt_algorithm,
    seedPath: config.jwt_key_path,
  });
  await keys.start();
  lifecycle.onDrain("signing keys", () => keys.stop());

  const { observed, health, close } = createTelemetry(config, log, clock);
  health.addCheck("database", () => database.check());
  lifecycle.onDrain("telemetry", close);

  const isSecure = config.public_url?.startsWith("https:") === true;
  const dispatcher = new Dispatcher({
    ...observed,
    isSecure,
    routineRoutes: new Set([OWN_ROUTES.revocations]),
  });
  const addresses = new ClientAddress(config.trusted_proxies);
  const listener = await listen(config, dispatcher, addresses, observed.metrics);
  lifecycle.onDrain("http", (context) => listener.close(context.remainingMs()));
  const port = listener.port ?? config.addr.port;
  const publicUrl = config.public_url ?? `http://localhost:${port}`;

  const secret = secrets.session;
  const stores = createStores({ config, database, box, keys, clock, log, secret, publicUrl });
  const metrics = createAuthMetrics(observed.metrics, {
    countSessions: () => stores.sessions.count(),
    getKeyAgeSeconds: () => keys.ageSeconds,
  });
  const frame = createFrame({
    name: config.brand_name ?? config.mfa_totp_issuer,
    host: new URL(publicUrl).host,
    words: listServiceNames(config, publicUrl),
    look,
  });
  const oauth = await startOAuth(stores, metrics, createCorePages(frame));
  lifecycle.onDrain("oauth", () => oauth.close());
  const domain = { ...createDomain(stores, oauth, metrics, options.passwordCost), addresses };

  await clearDatabaseCopies(describeState(config));
  const identification = new Identification(domain);
  const webConsole = createConsole({ ...domain, identification });
  const { guard } = webConsole;
  const feeds = createFeeds(guard, observed, health);
  lifecycle.onDrain("admin feeds", () => feeds.close());
  const backupRoute = createBackupRouteOf(domain, observed, lifecycle.stopping);
  const operation = [backupRoute, ...feeds.createRoutes(), ...webConsole.createRoutes()];
  const api = createApiOf({ ...domain, identification, guard }, observed, health, operation);
  const pages = createPages({
    ...domain,
    frame,
    canSend: config.platform_notify_url !== undefined,
  });
  const sweeps = startSweeps(stores);
  lifecycle.onDrain("sweeps", () => sweeps.stop());
  // Before the listener answers: the configured administrator can sign in with the first request.
  await applyBootstrap(config, domain);
  dispatcher.open({
    api,
    handlers: [oauth.dispatcher, pages],
    showMissing: (request, response) => pages.showMissing(request, response),
    onUpgrade: feeds.onUpgrade,
  });
  feeds.start();
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  lifecycle.reportListener({ name: "http", host: config.addr.host ?? "::", port });
  return { publicUrl, url: listener.url, database };
}

// The bootstrap file takes precedence over the variables of the first administrator.
async function applyBootstrap(config: AuthConfig, domain: Domain): Promise<void> {
  const { bootstrap_file: path, admin_user: username, admin_password: password } = config;
  const file = path === undefined ? undefined : readBootstrapFile(path);
  const configured =
    username === undefined || password === undefined ? undefined : { username, password };
  await ensureAdministrator({ ...domain, administrator: file?.administrator ?? configured });
  if (file !== undefined) await provideCliClient(domain, file.client_secret);
  if (file?.console !== undefined) await provideConsoleClient(domain, file.console);
}

function openAuthDatabase(config: AuthConfig, log: Logger): AuthDatabase {
  if (config.database_url === undefined)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  return openDatabase<AuthTables>({
    url: config.database_url ?? `sqlite:${join(config.data_dir, "auth.db")}`,
    service: "auth",
    // Besides the service, `platform-auth reset-administrator` and `platform doctor` open it.
    sqlite: { processes: "guests", reserveBytes: RESERVE_BYTES },
    postgres: {
      onConnectionError: (error) => log.warn("database connection lost", { error }),
    },
  });
}

/** For some thousand sign-ins on a full disk. */
const RESERVE_BYTES = 4 * 1024 ** 2;

type Telemetry = ReturnType<typeof createTelemetry>;

function createTelemetry(config: AuthConfig, log: Logger, clock: Clock) {
  const metrics = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "auth", version: VERSION });
  metrics.collect(processCollector);
  const tracer = createServiceTracer({
    resource: { service: "auth", version: VERSION },
    endpoint: config.otlp_endpoint,
    metrics,
    ids: createIdSource(),
    clock: systemClock,
  });
  return {
    /** Metrics, traces and logs of requests. */
    observed: { metrics, httpMetrics: createHttpMetrics(metrics), tracer, logger: log, clock },
    health: new HealthRegistry({
      service: "auth",
      version: VERSION,
      onCheckError: (check, error) => log.error("health check failed", { check, error }),
    }),
    close: async () => {
      processCollector.close();
      await tracer.shutdown(TRACES_FLUSH_MS);
    },
  };
}

function listen(
  config: AuthConfig,
  dispatcher: Dispatcher,
  addresses: ClientAddress,
  metrics: MetricRegistry,
): Promise<HttpListener> {
  return listenHttp({
    address: { host: config.addr.host ?? "::", port: config.addr.port },
    fetch: dispatcher.fetch,
    intercept: dispatcher.intercept,
    onUpgrade: dispatcher.onUpgrade,
    connectionsMax: config.connections_max,
    connectionsPerAddressMax: config.connections_per_address_max,
    isProxyAddress: (address) => addresses.isProxy(address),
    metrics,
  }).catch(async (error: unknown) => {
    throw await explainListenError(error, config.addr, "--addr or PLATFORM_AUTH_ADDR");
  });
}

function createFeeds(
  guard: Guard,
  { metrics, clock, logger }: Telemetry["observed"],
  health: HealthRegistry,
): AdminFeeds {
  return new AdminFeeds({
    service: "auth",
    version: VERSION,
    figures: createFigures(metrics),
    registry: metrics,
    health,
    guard,
    access: METRICS_ACCESS,
    clock,
    logger,
  });
}

function createApiOf(
  options: Domain & { addresses: ClientAddress; identification: Identification; guard: Guard },
  observed: Telemetry["observed"],
  health: HealthRegistry,
  operation: readonly ApiRoute[],
): Api {
  return createAuthApi({
    ...observed,
    health,
    guard: options.guard,
    metricsToken: options.config.metrics_token,
    routes: [
      ...createAccountRoutes(options),
      ...createSessionRoutes(options),
      ...createMfaRoutes(options),
      ...createPasskeyRoutes(options),
      ...createClientRoutes(options),
      ...createRbacRoutes(options),
      ...createAuditRoutes(options),
      ...createUserRoutes(options),
      ...operation,
    ],
  });
}

function createBackupRouteOf(
  { config, database, audit, clock }: Domain,
  { metrics }: Telemetry["observed"],
  stopping: AbortSignal,
): ApiRoute {
  return createBackupRoute({
    service: "auth",
    version: VERSION,
    dataFormat: DATA_FORMAT,
    token: config.backup_token,
    takeSnapshot: async () => {
      await audit.record({ action: "backup", actor: "operator" });
      return takeAuthSnapshot(describeState(config), database);
    },
    stopping,
    clock,
    metrics,
  });
}

// Deletes expired rows periodically.
function startSweeps({ config, clock, log, sessions, oneTimeTokens, throttle, audit }: Stores) {
  return sweepEvery(
    SWEEP_MS,
    {
      sessions: () => sessions.sweep(),
      one_time_tokens: () => oneTimeTokens.sweep(),
      throttles: () => throttle.sweep(),
      audit: () => audit.sweep(clock.now() - config.audit_retention_ms),
    },
    (error, sweep) => log.warn("deleting expired rows failed", { error, sweep }),
  );
}
