// Starts the identity service.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  openService,
  type Operation,
  type Service,
  type ServiceLifecycle,
} from "@platform/chassis";
import { clearDatabaseCopies } from "@platform/kernel/database-backup";
import { openDatabase } from "@platform/kernel/db";
import type { ApiRoute, Guard, HttpListener } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import { createHttpMetrics, type HttpMetrics } from "@platform/kernel/metrics";
import { sweepEvery, systemClock, type Clock } from "@platform/kernel/time";
import { createAccountRoutes } from "./api/account-routes.ts";
import { createAuditRoutes } from "./api/audit-routes.ts";
import { createClientRoutes } from "./api/client-routes.ts";
import { describeConsole } from "./api/console.ts";
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
  type FollowedSecrets,
  type Stores,
} from "./domain.ts";
import { KeyRing } from "./key/key-ring.ts";
import { createSecretBox, type LiveSecret, type SecretBox } from "@platform/kernel/secrets";
import { loadSecrets } from "./key/secrets.ts";
import { createAuthMetrics, createFigures } from "./metrics.ts";
import { loadBrand } from "./pages/brand.ts";
import { createCorePages } from "./pages/core-pages.ts";
import { CLI_CLIENT_ID, CONSOLE_CLIENT_ID } from "./oauth/core/lifetimes.ts";
import { OWN_ROUTES } from "./oauth/core/routes.ts";
import { createFrame, createPages } from "./pages/create-pages.ts";
import { provideCliClient, provideConsoleClient, readBootstrapFile } from "./sign-in/bootstrap.ts";
import { ensureAdministrator } from "./sign-in/first-administrator.ts";
import type { PasswordCost } from "./sign-in/password-hasher.ts";
import { ClientAddress } from "./web/client-address.ts";
import { Dispatcher } from "./web/dispatcher.ts";

const SWEEP_MS = 60_000;

/** Options of `startAuth`. */
export interface AuthOptions {
  config: AuthConfig;
  log: Logger;
  lifecycle: ServiceLifecycle;
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
  const service = openService({ name: "auth", version: VERSION, config, log, lifecycle, clock });
  const database = await openAuthDatabase(config, service);
  const secrets = await loadSecrets(config, database);
  const box = createSecretBox("auth", secrets.encryption);
  const keys = await openKeys(config, database, box, service);

  const httpMetrics = createHttpMetrics(service.metrics);
  const addresses = new ClientAddress(config.trusted_proxies);
  const dispatcher = createDispatcher(config, service, httpMetrics);
  const listener = await listen(config, service, dispatcher, addresses);
  const port = listener.port ?? config.addr.port;
  const publicUrl = config.public_url ?? `http://localhost:${port}`;

  const secret = secrets.session;
  const stores = createStores({ config, database, box, keys, clock, log, secret, publicUrl });
  const metrics = createAuthMetrics(service.metrics, {
    countSessions: () => stores.sessions.count(),
    getKeyAgeSeconds: () => keys.ageSeconds,
  });
  const frame = createFrame({
    name: config.brand_name ?? config.mfa_totp_issuer,
    host: new URL(publicUrl).host,
    words: listServiceNames(config, publicUrl),
    look,
  });
  const followed = followSecrets(config, lifecycle);
  const oauth = await startOAuth(stores, followed, metrics, createCorePages(frame));
  lifecycle.onDrain("oauth", () => oauth.close());
  const domain = {
    ...createDomain(stores, oauth, metrics, followed.mail, options.passwordCost),
    addresses,
  };

  await clearDatabaseCopies(describeState(config));
  const identification = new Identification(domain);
  const operation = openOperation({ ...domain, identification }, service);
  const routes = listRoutes({ ...domain, identification, guard: operation.guard });
  const api = createAuthApi({ service, operation, httpMetrics, routes });
  const canSend = config.platform_notify_url !== undefined;
  const pages = createPages({ ...domain, frame, canSend });
  const sweeps = startSweeps(stores);
  lifecycle.onDrain("sweeps", () => sweeps.stop());
  // Before the listener answers: the configured administrator can sign in with the first request.
  await applyBootstrap(config, domain, followed.clients, lifecycle);
  dispatcher.open({
    api,
    handlers: [oauth.dispatcher, pages],
    showMissing: (request, response) => pages.showMissing(request, response),
    onUpgrade: operation.feeds.onUpgrade,
  });
  service.setReady();
  return { publicUrl, url: listener.url, database };
}

function followSecrets(
  { revocations_token: feed, notify_token: mail }: AuthConfig,
  lifecycle: ServiceLifecycle,
): FollowedSecrets {
  const follow = (name: string, value: string | undefined): LiveSecret | undefined =>
    value === undefined ? undefined : lifecycle.followSecret(name, value);
  return {
    feed: follow("PLATFORM_REVOCATIONS_TOKEN", feed),
    mail: follow("PLATFORM_NOTIFY_TOKEN", mail),
    clients: new Map(),
  };
}

// The bootstrap file takes precedence over the variables of the first administrator.
async function applyBootstrap(
  config: AuthConfig,
  domain: Domain,
  clients: FollowedSecrets["clients"],
  lifecycle: ServiceLifecycle,
): Promise<void> {
  const { bootstrap_file: path, admin_user: username, admin_password: password } = config;
  const file = path === undefined ? undefined : readBootstrapFile(path);
  const configured =
    username === undefined || password === undefined ? undefined : { username, password };
  await ensureAdministrator({ ...domain, administrator: file?.administrator ?? configured });
  if (file === undefined) return;
  // The client is stored with the present secret; the former one is accepted until it ends.
  const provide = async (
    id: string,
    secret: LiveSecret,
    store: (value: string) => Promise<void>,
  ): Promise<void> => {
    clients.set(id, secret);
    secret.onReplaced(() => store(secret.value));
    await store(secret.value);
  };
  const cli = lifecycle.followSecret("PLATFORM_CLI_SECRET", file.client_secret);
  await provide(CLI_CLIENT_ID, cli, (value) => provideCliClient(domain, value));
  if (file.console === undefined) return;
  const { client_secret: consoleSecret, url } = file.console;
  const console = lifecycle.followSecret("PLATFORM_CONSOLE_SECRET", consoleSecret);
  await provide(CONSOLE_CLIENT_ID, console, (value) =>
    provideConsoleClient(domain, { client_secret: value, url }),
  );
}

async function openAuthDatabase(
  config: AuthConfig,
  { log, lifecycle, health, clock }: Service,
): Promise<AuthDatabase> {
  if (config.database_url === undefined)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  const database = openDatabase<AuthTables>({
    url: config.database_url ?? `sqlite:${join(config.data_dir, "auth.db")}`,
    service: "auth",
    // Besides the service, `platform-auth reset-administrator` and `platform doctor` open it.
    sqlite: {
      processes: "guests",
      reserveBytes: RESERVE_BYTES,
      acceptLoss: config.accept_loss,
    },
    postgres: {
      onConnectionError: (error) => log.warn("database connection lost", { error }),
    },
  });
  lifecycle.onDrain("database", () => database.close(), "database");
  await migrateAll(database, clock.now());
  health.addCheck("database", () => database.check());
  return database;
}

/** For some thousand sign-ins on a full disk. */
const RESERVE_BYTES = 4 * 1024 ** 2;

async function openKeys(
  config: AuthConfig,
  database: AuthDatabase,
  box: SecretBox,
  { clock, log, lifecycle }: Service,
): Promise<KeyRing> {
  const { jwt_algorithm: algorithm, jwt_key_path: seedPath } = config;
  const keys = new KeyRing({ database, box, clock, log, algorithm, seedPath });
  await keys.start();
  lifecycle.onDrain("signing keys", () => keys.stop());
  return keys;
}

function createDispatcher(
  config: AuthConfig,
  { metrics, tracer, log: logger, clock }: Service,
  httpMetrics: HttpMetrics,
): Dispatcher {
  return new Dispatcher({
    metrics,
    httpMetrics,
    tracer,
    logger,
    clock,
    isSecure: config.public_url?.startsWith("https:") === true,
    routineRoutes: new Set([OWN_ROUTES.revocations]),
  });
}

function listen(
  config: AuthConfig,
  service: Service,
  dispatcher: Dispatcher,
  addresses: ClientAddress,
): Promise<HttpListener> {
  return service.serve({
    address: config.addr,
    setting: "--addr or PLATFORM_AUTH_ADDR",
    fetch: dispatcher.fetch,
    intercept: dispatcher.intercept,
    onUpgrade: dispatcher.onUpgrade,
    connectionsMax: config.connections_max,
    connectionsPerAddressMax: config.connections_per_address_max,
    isProxyAddress: (address) => addresses.isProxy(address),
  });
}

function openOperation(
  options: Domain & { identification: Identification },
  service: Service,
): Operation {
  const { config, database, audit, identification } = options;
  return service.openOperation({
    guard: identification.guard,
    console: describeConsole(options),
    figures: createFigures(service.metrics),
    access: METRICS_ACCESS,
    backup: {
      dataFormat: DATA_FORMAT,
      takeSnapshot: async () => {
        await audit.record({ action: "backup", actor: "operator" });
        return takeAuthSnapshot(describeState(config), database);
      },
    },
  });
}

function listRoutes(
  options: Domain & { addresses: ClientAddress; identification: Identification; guard: Guard },
): ApiRoute[] {
  return [
    ...createAccountRoutes(options),
    ...createSessionRoutes(options),
    ...createMfaRoutes(options),
    ...createPasskeyRoutes(options),
    ...createClientRoutes(options),
    ...createRbacRoutes(options),
    ...createAuditRoutes(options),
    ...createUserRoutes(options),
  ];
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
