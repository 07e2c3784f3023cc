// The composition root of the identity service: it makes every part and hands it on, from top to bottom.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "@platform/kernel/db";
import { createEgress } from "@platform/kernel/egress";
import { HealthRegistry } from "@platform/kernel/health";
import { listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import {
  MetricRegistry,
  createHttpMetrics,
  createProcessCollector,
} from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import type { Clock } from "@platform/kernel/time";
import { createOtlpExporter, createTracer } from "@platform/kernel/trace";
import type { Tracer } from "@platform/kernel/trace";
import { authVersion } from "./config.ts";
import type { AuthConfig } from "./config.ts";
import { createAuthApi } from "./http/api.ts";
import { Front } from "./http/front.ts";
import { KeyRing } from "./key/key-ring.ts";
import { createSecretBox } from "./key/secret-box.ts";
import { createOAuth } from "./oauth/oauth.ts";
import { createRbac } from "./rbac/rights.ts";
import { migrateRooms } from "./schema.ts";
import type { AuthTables } from "./schema.ts";
import { loadSecrets } from "./secrets.ts";
import { createSessionLookup } from "./session/session.ts";
import { createAccounts } from "./user/account.ts";

const tracesFlushMs = 1000;

/** What the service is started with. */
export interface AuthOptions {
  config: AuthConfig;
  log: Logger;
  lifecycle: Pick<Lifecycle, "onDrain" | "reportListener" | "stopping">;
  clock?: Clock;
}

/** A running service. */
export interface AuthService {
  /** Issuer and base of all links. */
  readonly publicUrl: string;
  /** Where it really listens. */
  readonly url: string;
}

/** Starts the service; when this resolves, it answers. */
export async function startAuth(options: AuthOptions): Promise<AuthService> {
  const { config, log, lifecycle } = options;
  const clock = options.clock ?? systemClock;

  const url = config.database_url ?? `sqlite:${join(config.data_dir, "auth.db")}`;
  if (config.database_url === undefined)
    mkdirSync(config.data_dir, { recursive: true, mode: 0o700 });
  const database = openDatabase<AuthTables>({ url, service: "auth" });
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

  const front = new Front();
  const listener = await listenHttp({
    address: { host: config.addr.host ?? "::", port: config.addr.port },
    fetch: front.fetch,
    intercept: front.intercept,
  }).catch(async (error: unknown) => {
    throw await explainListenError(error, config.addr, "--addr or PLATFORM_AUTH_ADDR");
  });
  lifecycle.onDrain("http", (context) => listener.close(context.remainingMs()));
  const port = listener.port ?? config.addr.port;
  const publicUrl = config.public_url ?? `http://localhost:${port}`;

  const tokensIssued = registry.counter({
    name: "platform_auth_tokens_issued_total",
    help: "Access tokens issued, by grant type.",
    labels: ["grant"],
  });
  const oauth = await createOAuth({
    issuer: publicUrl,
    algorithm: config.jwt_algorithm,
    audience: config.audience,
    secret: secrets.session,
    database,
    box,
    keys,
    clock,
    log,
    accounts: createAccounts(database),
    sessions: createSessionLookup(database, () => clock.now()),
    rbac: createRbac(database),
    egressFetch: createEgress({ allowedNetworks: config.egress_networks }),
    interactionPath: (uid) => `/interaction/${uid}`,
    acrValues: ["1", "2"],
    onSignOut: async (sid) => {
      await database.db.deleteFrom("auth_sessions").where("id", "=", sid).execute();
    },
    onTokenIssued: (grant) => tokensIssued.with({ grant }).add(1),
  });
  lifecycle.onDrain("oauth", () => oauth.close());

  const api = createAuthApi({
    clock,
    health,
    logger: log,
    tracer,
    metrics: registry,
    httpMetrics,
    routes: [],
  });
  front.open({ api, oauth });
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  lifecycle.reportListener({ name: "http", host: config.addr.host ?? "::", port });
  return { publicUrl, url: listener.url };
}

function createAuthTracer(config: AuthConfig, metrics: MetricRegistry): Tracer {
  const exporter =
    config.otlp_endpoint === undefined
      ? undefined
      : createOtlpExporter({
          endpoint: config.otlp_endpoint,
          resource: { service: "auth", version: authVersion },
          metrics,
        });
  return createTracer({ ids: createIdSource(), clock: systemClock, exporter });
}
