// The composition root of the identity service: it makes every part and hands it on, from top to bottom.
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { openDatabase } from "@platform/kernel/db";
import { createEgress } from "@platform/kernel/egress";
import { HealthRegistry } from "@platform/kernel/health";
import { listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import {
  MetricRegistry,
  createHttpMetrics,
  createProcessCollector,
} from "@platform/kernel/metrics";
import { systemClock, type Clock } from "@platform/kernel/time";
import { createServiceTracer, type Tracer } from "@platform/kernel/trace";
import { AuditLog } from "./audit/audit-log.ts";
import { authVersion, type AuthConfig } from "./config.ts";
import { listAccountOperations } from "./api/account-routes.ts";
import { createAuthApi } from "./api/create-api.ts";
import { listAuditOperations } from "./api/audit-routes.ts";
import { ClientAddress } from "./web/client-address.ts";
import { listClientOperations } from "./api/client-routes.ts";
import { Cookies } from "./web/cookies.ts";
import { SessionResolver } from "./web/session-resolver.ts";
import { Dispatcher } from "./web/dispatcher.ts";
import { listMfaOperations } from "./api/mfa-routes.ts";
import { listPasskeyOperations } from "./api/passkey-routes.ts";
import { Identification } from "./api/principal.ts";
import { listRbacOperations } from "./api/rbac-routes.ts";
import { listSessionOperations } from "./api/session-routes.ts";
import { listUserOperations } from "./api/user-routes.ts";
import { KeyRing } from "./key/key-ring.ts";
import { createSecretBox } from "./key/secret-box.ts";
import { Credentials } from "./sign-in/credentials.ts";
import { DeviceMarks } from "./sign-in/device-marks.ts";
import { CredentialVerifier } from "./sign-in/credential-verifier.ts";
import { SecondFactors } from "./sign-in/second-factors.ts";
import { SignIn } from "./sign-in/sign-in.ts";
import { SecurityNotices } from "./sign-in/security-notices.ts";
import { createAuthMetrics } from "./metrics.ts";
import { Factors } from "./factor/factors.ts";
import { deriveCodeKey } from "./factor/one-time-code.ts";
import { MfaPolicies } from "./factor/policies.ts";
import { Notifier } from "./notify/notifier.ts";
import { OAuth } from "./oauth/oauth.ts";
import { createCorePages } from "./pages/core-pages.ts";
import { createFrame, createPages } from "./pages/create-pages.ts";
import { Passkeys } from "./factor/passkeys.ts";
import { owaspCost, PasswordHasher, type PasswordCost } from "./sign-in/password-hasher.ts";
import { PasswordPolicy } from "./sign-in/password-policy.ts";
import { PolicyStore } from "./rbac/policy-store.ts";
import { createRbac } from "./rbac/rights.ts";
import { migrateRooms, type AuthDatabase, type AuthTables } from "./database/schema.ts";
import { loadSecrets } from "./key/secrets.ts";
import { Sessions } from "./session/sessions.ts";
import { SessionTokens } from "./session/token.ts";
import { startSweeping } from "./sweep.ts";
import { Throttle } from "./guard/throttle.ts";
import { Tickets } from "./guard/one-time-tokens.ts";
import { ensureAdministrator } from "./sign-in/first-administrator.ts";
import { Groups } from "./user/groups.ts";
import { Users } from "./user/users.ts";

const tracesFlushMs = 1000;

/** What the service is started with. */
export interface AuthOptions {
  config: AuthConfig;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "reportListener" | "stopping">;
  clock?: Clock;
  /** What hashing a password costs. Default OWASP's; less is for tests. */
  passwordCost?: PasswordCost;
}

/** A running service. */
export interface AuthService {
  /** Issuer and base of all links. */
  readonly publicUrl: string;
  /** Where it really listens. */
  readonly url: string;
  readonly database: AuthDatabase;
}

/** Starts the service; when this resolves, it answers. */
export async function startAuth(options: AuthOptions): Promise<AuthService> {
  const { config, log, lifecycle } = options;
  const clock = options.clock ?? systemClock;

  const url = config.database_url ?? `sqlite:${join(config.data_dir, "auth.db")}`;
  if (config.database_url === undefined)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  const database = openDatabase<AuthTables>({
    url,
    service: "auth",
    postgres: {
      onConnectionError: (error) => log.warn("a connection to the database broke", { error }),
    },
  });
  lifecycle.onDrain("database", () => database.close());
  const secrets = loadSecrets(config, database.kind);
  await migrateRooms(database, clock.now());

  const box = createSecretBox(secrets.encryption);
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

  const registry = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "auth", version: authVersion });
  registry.collect(processCollector);
  const httpMetrics = createHttpMetrics(registry);
  const tracer = createAuthTracer(config, registry);
  const health = new HealthRegistry({
    service: "auth",
    version: authVersion,
    onCheckError: (check, error) => log.error("a health check failed", { check, error }),
  });
  health.addCheck("database", () => database.check());
  lifecycle.onDrain("telemetry", async () => {
    processCollector.close();
    await tracer.shutdown(tracesFlushMs);
  });

  const isSecure = config.public_url?.startsWith("https:") === true;
  const observed = { metrics: registry, httpMetrics, tracer, logger: log, clock };
  const dispatcher = new Dispatcher({ ...observed, isSecure });
  const addresses = new ClientAddress(config.trusted_proxies);
  const listener = await listenHttp({
    address: { host: config.addr.host ?? "::", port: config.addr.port },
    fetch: dispatcher.fetch,
    intercept: dispatcher.intercept,
    connectionsMax: config.connections_max,
    connectionsPerAddressMax: config.connections_per_address_max,
    isProxyAddress: (address) => addresses.isProxy(address),
    metrics: registry,
  }).catch(async (error: unknown) => {
    throw await explainListenError(error, config.addr, "--addr or PLATFORM_AUTH_ADDR");
  });
  lifecycle.onDrain("http", (context) => listener.close(context.remainingMs()));
  const port = listener.port ?? config.addr.port;
  const publicUrl = config.public_url ?? `http://localhost:${port}`;

  const ids = createIdSource({ clock });
  const audit = new AuditLog(database, clock, secrets.session);
  const throttle = new Throttle(database, clock);
  const tickets = new Tickets(database, clock, secrets.session);
  const sessions = new Sessions(
    { database, clock, ids, tokens: new SessionTokens(secrets.session) },
    { idleMs: config.session_idle_ms, absoluteMs: config.session_absolute_ms },
  );
  const rbac = createRbac(database);
  const policy = new PolicyStore(database, clock);
  const users = new Users({ database, clock, ids, policy });
  const groups = new Groups({ database, clock, ids, policy });
  const hasher = new PasswordHasher({
    concurrency: config.password_hash_concurrency ?? availableParallelism(),
    waitingMax: config.password_hash_queue,
    registrationsWaitingMax: config.registration_hash_queue,
    cost: options.passwordCost ?? owaspCost,
  });
  const notifier = new Notifier({
    url: config.platform_notify_url,
    token: config.notify_token,
    from: config.mail_from,
  });
  const onUnsent = (error: unknown): void => log.error("a message could not be sent", { error });
  const notices = new SecurityNotices(notifier, onUnsent);
  const metrics = createAuthMetrics(registry, {
    countSessions: () => sessions.count(),
    getKeyAgeSeconds: () => keys.ageSeconds,
  });
  const policies = new MfaPolicies({ database, rbac, policy, clock });
  const frame = createFrame(config.mfa_totp_issuer);
  const cookies = new Cookies(publicUrl);
  const resolver = new SessionResolver({
    sessions,
    users,
    cookies,
    clock,
    sessionAbsoluteMs: config.session_absolute_ms,
  });
  const oauth = await OAuth.start({
    issuer: publicUrl,
    algorithm: config.jwt_algorithm,
    audience: config.audience,
    pkce: config.pkce,
    secret: secrets.session,
    database,
    box,
    keys,
    clock,
    log,
    users,
    sessions,
    rbac,
    resolver,
    egressFetch: createEgress({ allowedNetworks: config.egress_networks }),
    pages: createCorePages(frame),
    needsSecondFactor: (userId, clientId) => policies.requires(userId, clientId),
    onTokenIssued: metrics.countToken,
  });
  lifecycle.onDrain("oauth", () => oauth.close());
  const deviceMarks = new DeviceMarks(secrets.session);
  const credentials = new Credentials({
    database,
    deviceMarks,
    users,
    hasher,
    policy: new PasswordPolicy([config.mfa_totp_issuer, new URL(publicUrl).hostname]),
    tickets,
    throttle,
    sessions,
    oauth,
    notifier,
    notices,
    audit,
    publicUrl,
    registration: config.registration,
    registrationsHourly: {
      perAddress: config.registrations_per_address_hourly,
      perNetwork: config.registrations_per_network_hourly,
    },
    onHiddenError: onUnsent,
  });
  const passkeys = new Passkeys({
    database,
    clock,
    tickets,
    publicUrl,
    rpName: config.mfa_totp_issuer,
  });
  const verifier = new CredentialVerifier({
    users,
    hasher,
    passkeys,
    throttle,
    audit,
    countLogin: metrics.countLogin,
    deviceMarks,
  });
  const factors = new Factors({
    database,
    clock,
    ids,
    box,
    notifier,
    throttle,
    codeKey: deriveCodeKey(secrets.session),
    issuer: config.mfa_totp_issuer,
    count: metrics.countMfa,
  });
  const secondFactors = new SecondFactors({ clock, factors, passkeys, tickets, users });
  const signIn = new SignIn({
    verifier,
    secondFactors,
    factors,
    policies,
    tickets,
    sessions,
    oauth,
    audit,
    notices,
    deviceMarks,
    countLogin: metrics.countLogin,
  });
  const identification = new Identification({
    publicUrl,
    users,
    sessions,
    resolver,
    rbac,
    oauth,
    addresses,
    hasFactor: (userId) => secondFactors.hasFactor(userId),
  });
  const api = createAuthApi({
    ...observed,
    health,
    guard: identification.guard,
    routes: [
      ...listAccountOperations({
        identification,
        signIn,
        credentials,
        oauth,
        audit,
        cookies,
      }),
      ...listSessionOperations({ identification, sessions, credentials, users, audit }),
      ...listMfaOperations({
        identification,
        factors,
        policies,
        oauth,
        secondFactors,
        signIn,
        notices,
        audit,
        cookies,
      }),
      ...listPasskeyOperations({
        identification,
        passkeys,
        signIn,
        sessions,
        credentials,
        users,
        notices,
        audit,
        cookies,
      }),
      ...listClientOperations({ identification, oauth, keys, audit }),
      ...listRbacOperations({ identification, policy, rbac, audit }),
      ...listAuditOperations({ identification, audit }),
      ...listUserOperations({
        identification,
        users,
        groups,
        credentials,
        factors,
        notices,
        oauth,
        audit,
        publicUrl,
      }),
    ],
  });
  const pages = createPages({
    frame,
    cookies,
    signIn,
    secondFactors,
    credentials,
    passkeys,
    factors,
    policies,
    rbac,
    users,
    sessions,
    oauth,
    audit,
    addresses,
    publicUrl,
    registration: config.registration,
    canSend: config.platform_notify_url !== undefined,
    resolver,
    secret: secrets.session,
    notices,
    log,
  });
  const stopSweeping = startSweeping(
    [
      () => sessions.sweep(),
      () => tickets.sweep(),
      () => throttle.sweep(),
      () => audit.sweep(clock.now() - config.audit_retention_ms),
    ],
    log,
  );
  lifecycle.onDrain("sweeps", stopSweeping);
  // Before anybody is answered: who is told that the service is there signs in with the configured name at once.
  await ensureAdministrator({ config, database, credentials, tickets, publicUrl, log });
  dispatcher.open({
    api,
    handlers: [oauth.dispatcher, pages],
    showMissing: (request, response) => pages.showMissing(request, response),
  });
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  lifecycle.reportListener({ name: "http", host: config.addr.host ?? "::", port });
  return { publicUrl, url: listener.url, database };
}

function createAuthTracer(config: AuthConfig, metrics: MetricRegistry): Tracer {
  return createServiceTracer({
    resource: { service: "auth", version: authVersion },
    endpoint: config.otlp_endpoint,
    metrics,
    ids: createIdSource(),
    clock: systemClock,
  });
}
