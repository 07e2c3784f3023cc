// A daemon put together: telemetry, identity of callers, the operator's side, the API and its listener, draining.
import type { ListenAddress as ConfiguredAddress } from "@platform/kernel/config";
import type { HealthRegistry } from "@platform/kernel/health";
import {
  createApi,
  createBearerGuard,
  listenHttp,
  type Api,
  type ApiOptions,
  type HttpListener,
  type ListenOptions,
} from "@platform/kernel/http";
import { createIdSource, type IdSource } from "@platform/kernel/ids";
import {
  createConfiguredVerifier,
  followRevocations,
  type FollowedRevocations,
  type RevocationConfig,
  type TokenConfig,
  type TokenVerifier,
} from "@platform/kernel/identity";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { followShared, type Secret, type SharedSecrets } from "@platform/kernel/secrets";
import { systemClock, type Clock } from "@platform/kernel/time";
import { CertificateWatch, collectExpiry, pickCertificateFiles } from "@platform/kernel/tls";
import type { SpanCounts, SpanExporter, SpanKeeper, Tracer } from "@platform/kernel/trace";
import { createOperation, type Operation, type OperationOptions } from "./operation.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";

const TRACES_FLUSH_MS = 1_000;
/** Time kept of the drain for the parts behind the listeners, which give back what they have not finished. */
const PARTS_MS = 2_000;

/** The part of a service's lifecycle that the chassis uses. */
export type ServiceLifecycle = Pick<
  Lifecycle,
  "followSecret" | "onDrain" | "onReload" | "reportListener" | "stopping"
>;

/** Configuration keys that the chassis reads. */
type ServiceConfig = TokenConfig &
  Omit<RevocationConfig, "revocations_token"> & {
    revocations_token?: string | undefined;
    otlp_endpoint?: string | undefined;
    /** Its name in the specification of some services. */
    otel_endpoint?: string | undefined;
    metrics_token?: string | undefined;
    backup_token?: string | undefined;
    console_url?: string | undefined;
    tls_cert?: string | undefined;
    tls_key?: string | undefined;
  };

/** Options of {@link openService}. */
export interface ServiceOptions {
  /** As in its metrics and logs: `auth`, `gate` … */
  name: string;
  version: string;
  config: ServiceConfig;
  /** Token of the operator. */
  operatorToken?: Secret | undefined;
  log: Logger;
  lifecycle: ServiceLifecycle;
  clock?: Clock | undefined;
  /** Counts of exported spans, if other threads export some, too. Default: metrics of the service. */
  spanCounts?: SpanCounts;
}

/** Options of {@link Service.createApi}: those that differ between services. */
type OwnApiOptions = Omit<
  ApiOptions,
  | "service"
  | "version"
  | "guard"
  | "health"
  | "metrics"
  | "metricsToken"
  | "logger"
  | "tracer"
  | "clock"
> &
  Partial<Pick<ApiOptions, "metrics">> & { operation: Operation };

/** Options of {@link Service.serve}. */
interface ServeOptions extends Omit<ListenOptions, "address" | "tls" | "metrics"> {
  address: ConfiguredAddress | { path: string };
  /** Flag and variable of the address, for errors. */
  setting: string;
  /** Name of the listener in reports. Default: `http`, or `https` with a certificate. */
  name?: string;
}

/**
 * Creates telemetry and the verifier of callers' tokens:
 *
 *     const service = openService({ name: "notify", version, config, log, lifecycle });
 *     const operation = service.openOperation({ figures, console, backup });
 *     const api = service.createApi({ title: "Mail", routes, operation });
 *     await service.serve({ ...api, address: config.addr, setting: "--addr", onUpgrade: operation.feeds.onUpgrade });
 *     service.setReady();
 *
 * Throws if the configured issuer is incomplete.
 */
export function openService(options: ServiceOptions): Service {
  return new Service(options);
}

/** A service that starts. */
export class Service {
  readonly name: string;
  readonly version: string;
  readonly log: Logger;
  readonly lifecycle: ServiceLifecycle;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly metrics: MetricRegistry;
  readonly tracer: Tracer;
  /** Keeps spans, and sends them to a collector if there is one. */
  readonly spans: SpanExporter;
  readonly #kept: SpanKeeper;
  readonly health: HealthRegistry;
  readonly followed: FollowedRevocations;
  /** Undefined if no kind of token is configured. */
  readonly verifier: TokenVerifier | undefined;
  /** The certificate of the listeners; undefined if none is configured. */
  readonly certificates: CertificateWatch | undefined;
  readonly #config: Omit<ServiceConfig, keyof SharedSecrets> & SharedSecrets;
  #operation: Operation | undefined;

  constructor(options: ServiceOptions) {
    const { name, version, operatorToken, log, lifecycle, clock = systemClock } = options;
    const shared = followShared(options.config, (key, value) => lifecycle.followSecret(key, value));
    const { metrics_token, backup_token, revocations_token } = shared;
    const config = { ...options.config, metrics_token, backup_token, revocations_token };
    this.name = name;
    this.version = version;
    this.log = log;
    this.lifecycle = lifecycle;
    this.clock = clock;
    this.#config = config;
    const files = pickCertificateFiles(config);
    this.certificates = files && new CertificateWatch({ pairs: [files], log });
    this.ids = createIdSource({ clock });
    const endpoint = config.otlp_endpoint ?? config.otel_endpoint;
    const { spanCounts } = options;
    const { ids } = this;
    const base = { name, version, endpoint, spanCounts };
    const telemetry = createTelemetry({ ...base, log, ids, clock });
    const { metrics, tracer, kept, spans, health }: Telemetry = telemetry;
    this.metrics = metrics;
    collectExpiry(metrics, "the listener", () => this.certificates);
    this.tracer = tracer;
    this.spans = spans;
    this.#kept = kept;
    this.health = health;
    lifecycle.onDrain("telemetry", () => telemetry.close(TRACES_FLUSH_MS), "telemetry");
    lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
    this.followed = followRevocations({ config, clock, log, metrics });
    lifecycle.onDrain("revocations", () => this.followed.stop());
    // A service that follows none has nothing to warn of, or follows them in a way of its own.
    if (config.revocations_url !== undefined)
      health.addWarning("revocations", this.followed.describe);
    const { revocations } = this.followed;
    this.verifier = createConfiguredVerifier({ config, operatorToken, revocations, clock, log });
  }

  /** Creates console, feeds and backups. Once for a service. */
  openOperation(options: OperationOptions): Operation {
    const { name, version, metrics, health, clock, log, lifecycle } = this;
    const { console_url: consoleUrl, backup_token: backupToken } = this.#config;
    const operation = createOperation(
      {
        service: name,
        version,
        registry: metrics,
        health,
        clock,
        logger: log,
        guard: createBearerGuard(this.verifier),
        consoleUrl,
        isTls: this.certificates !== undefined,
        backupToken,
        stopping: lifecycle.stopping,
        kept: this.#kept,
      },
      options,
    );
    this.#operation = operation;
    lifecycle.onDrain("admin feeds", () => operation.feeds.close(), "streams");
    return operation;
  }

  /** Creates the API with the operator's routes behind `routes`. */
  createApi({ operation, routes, ...options }: OwnApiOptions): Api {
    const { name, version, health, metrics, tracer, clock, log } = this;
    return createApi({
      metrics,
      metricsToken: this.#config.metrics_token,
      ...options,
      service: name,
      version,
      guard: operation.guard,
      routes: [...routes, ...operation.routes],
      health,
      logger: log,
      tracer,
      clock,
    });
  }

  /** Opens the listener, with the service's certificate. Rejects with an explanation if the address cannot be used. */
  async serve({ address, setting, name, ...options }: ServeOptions): Promise<HttpListener> {
    const { certificates, lifecycle, metrics } = this;
    const tls = certificates?.current.pairs[0];
    const listening = listenHttp({
      ...options,
      address,
      // A socket in a folder of the service has no clients but its own.
      ...("path" in address ? {} : { metrics }),
      ...(tls === undefined ? {} : { tls }),
    });
    const listener = await listening.catch(async (error: unknown) => {
      throw "path" in address ? error : await explainListenError(error, address, setting);
    });
    certificates?.follow(lifecycle, ({ pairs: [pair] }) => listener.setTls(pair!));
    lifecycle.onDrain(
      "http",
      (drain) => listener.close(Math.max(0, drain.remainingMs() - PARTS_MS)),
      "listeners",
    );
    const { host, port } = listener;
    if (host !== undefined && port !== undefined) {
      lifecycle.reportListener({
        name: name ?? (tls === undefined ? "http" : "https"),
        host,
        port,
      });
    }
    return listener;
  }

  /** The service accepts requests: its readiness turns UP, and its feeds begin to sample. */
  setReady(): void {
    if (this.lifecycle.stopping.aborted) return;
    this.#operation?.feeds.start();
    this.health.setState("ready");
  }
}
