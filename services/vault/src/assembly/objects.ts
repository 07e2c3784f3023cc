// The object API: S3 on a listener of its own.
import type { Service } from "@platform/chassis";
import { createEngine, createServer, type Engine, type Server } from "@platform/http1";
import { formatAddress, isLoopbackAddress, type ListenAddress } from "@platform/kernel/config";
import type { HealthAnswer, HealthRegistry } from "@platform/kernel/health";
import { explainListenError } from "@platform/kernel/lifecycle";
import { AddressSet } from "@platform/kernel/network";
import { Authorizer } from "../access/authorizer.ts";
import { TenantBudgets } from "../access/budget.ts";
import { toAuditEntry, toCallEntry } from "../admin/audit-entry.ts";
import { AuditLog } from "../audit/audit-log.ts";
import { formatCallLine, formatRequestLine } from "../audit/bucket-log-line.ts";
import type { BucketLogs } from "../audit/bucket-logs.ts";
import { hasDefaultCredentials, type VaultConfig } from "../config.ts";
import type { BackupParts } from "../backup/other-run.ts";
import type { JobEngine } from "../job/job-engine.ts";
import type { ModuleRegistry } from "../guest/module-registry.ts";
import type { LogOutput } from "../log/log-output.ts";
import type { S3Answer } from "../s3/answer.ts";
import { collectConnections, createFaultCounter } from "../s3/connection-metrics.ts";
import type { ObjectApi } from "../s3/context.ts";
import { FilterMetrics } from "../s3/filter-metrics.ts";
import { InnerOperations, type InnerOperationsOptions } from "../s3/inner-operations.ts";
import { createObjectMetrics } from "../s3/object-metrics.ts";
import { createObjectHandler } from "../s3/object-server.ts";
import { answerRefusal } from "../s3/refusal-answer.ts";
import { RequestIds } from "../s3/request-ids.ts";
import { createRequestRecorder } from "../s3/request-log.ts";
import { RequestMemory } from "../s3/request-memory.ts";
import { TimestampFormatter } from "../s3/wire/timestamp.ts";
import type { Callers } from "./callers.ts";
import { openSearch } from "./search.ts";
import { openGuests, startTriggers } from "./guests.ts";
import { openBackups, openJobs } from "./jobs.ts";
import { openBucketLogs } from "./bucket-logs.ts";
import { openFederation } from "./federation.ts";
import { openReplication } from "./replication.ts";
import { openSelect } from "./select.ts";
import type { EventDelivery } from "./delivery.ts";
import type { Storage } from "./storage.ts";

/** The body of a request is limited by S3's maximum; a request sets its own limit. */
const BODY_BYTES_MAX = 1_048_576;
const TARGET_BYTES_MAX = 16_384;
/** An object may have 2 KiB of metadata in very short headers. */
const FIELDS_MAX = 512;
const LOOPBACK = "127.0.0.1";

/** The open API. */
export interface Objects {
  readonly api: ObjectApi;
  readonly ids: RequestIds;
  readonly port: number;
  /** Adds an operation of the console to the audit log. */
  readonly onOperation: InnerOperationsOptions["onFinished"];
  readonly modules: ModuleRegistry;
  readonly jobs: JobEngine;
  readonly backups: BackupParts;
  readonly operations: InnerOperations;
}

/** Hooks of each answered request. */
interface Observer {
  onStarted: Parameters<typeof createObjectHandler>[0]["onStarted"];
  onFinished: Parameters<typeof createObjectHandler>[0]["onFinished"];
  onFault: (fault: Parameters<ReturnType<typeof createFaultCounter>>[0]) => void;
}

/** Records of finished requests. */
interface Records {
  readonly audit: AuditLog | undefined;
  readonly logs: BucketLogs;
  readonly account: Storage["account"];
}

/** Opens the listener. */
export async function openObjects(
  config: VaultConfig,
  service: Service,
  output: LogOutput,
  storage: Storage,
  { eventPolicy }: EventDelivery,
  callers: Callers,
): Promise<Objects> {
  const { clock, log } = service;
  const { store, account, directory } = storage;
  const guests = await openGuests(config, service, storage);
  const backups = openBackups(config, service, storage);
  const jobs = openJobs(config, service, storage, backups);
  const authorizer = new Authorizer(account);
  const replication = openReplication(service, storage, authorizer, jobs);
  const { tenant_rate: ratePerSecond, tenant_burst: burst } = config;
  const api: ObjectApi = {
    store,
    authorizer,
    verifier: callers.verifier,
    budgets: new TenantBudgets({ ratePerSecond, burst, clock }),
    clock,
    log,
    region: config.region,
    domain: config.domain,
    websiteDomain: config.website_domain,
    eventPolicy,
    isUser: (name) => directory.hasUser(name),
    trustedProxies: new AddressSet(config.trusted_proxies),
    memory: new RequestMemory(),
    select: openSelect(config, service),
    ...openSearch(config, service, storage),
    webIdentity: callers.webIdentity,
    guests,
    jobs,
    replication,
    federation: openFederation(service, storage),
  };
  const audit = openAudit(config, service, storage);
  const engine = createEngine({ unsentBytesMax: config.max_unsent_size });
  const ids = new RequestIds();
  const logs = openBucketLogs(config, service, store, api.authorizer);
  const records = { audit, logs, account };
  const observer = createObserver(service, output, storage, engine, records);
  const server = createObjectServer(config, service, api, { engine, ids, observer });
  collectConnections(service.metrics, () => ({
    connections: server.counts.connections,
    unsentBytes: engine.outgoing.heldBytes,
  }));
  const port = await listen(config, service, server);
  drainServer(service, server, engine);
  const onOperation = createOperationAudit(service, records);
  const operations = new InnerOperations({ api, ids, onFinished: onOperation });
  startTriggers(service, storage, guests, operations);
  replication.start();
  jobs.start(operations);
  return { api, ids, port, onOperation, modules: guests.modules, jobs, backups, operations };
}

function drainServer({ lifecycle }: Service, server: Server, engine: Engine): void {
  lifecycle.onDrain(
    "object API",
    async (context) => {
      await server.drain(context.remainingMs());
      engine.close();
    },
    "listeners",
  );
}

function createOperationAudit(
  { clock }: Service,
  { audit, logs, account }: Records,
): Objects["onOperation"] {
  const timestamps = new TimestampFormatter();
  return (call) => {
    const nowMs = clock.now();
    audit?.add(toCallEntry(call, timestamps.format(nowMs)));
    if (logs.isLogged(call.bucket))
      logs.add(call.bucket, formatCallLine(call, account, nowMs), nowMs);
  };
}

/** The address to listen on: the built-in credentials must not be usable from other machines. */
export function restrictAddress(address: ListenAddress, config: VaultConfig): ListenAddress {
  if (!hasDefaultCredentials(config) || isLoopbackAddress(address)) return address;
  if (address.host === undefined) return { host: LOOPBACK, port: address.port };
  throw new Error(
    `the built-in credentials are allowed on this machine only: set STORE_ACCESS_KEY_ID and STORE_SECRET_ACCESS_KEY to listen on ${formatAddress(address)}`,
  );
}

function openAudit(
  config: VaultConfig,
  { clock, log, lifecycle }: Service,
  { store, owner }: Storage,
): AuditLog | undefined {
  if (!config.enable_audit) return undefined;
  const audit = new AuditLog({ store, owner, region: config.region, clock, log });
  lifecycle.onDrain("audit log", () => audit.close());
  return audit;
}

function createObserver(
  { metrics: registry, clock, log }: Service,
  output: LogOutput,
  { store }: Storage,
  engine: Engine,
  { audit, logs, account }: Records,
): Observer {
  const metrics = createObjectMetrics(registry, store);
  const filters = new FilterMetrics(registry, store);
  const countFault = createFaultCounter(registry);
  const recordRequest = createRequestRecorder(log, output);
  const timestamps = new TimestampFormatter();
  return {
    onStarted: metrics.onStarted,
    onFinished: (finished) => {
      const { exchange } = finished.request;
      const durationMs = engine.now() - exchange.startedAtMs;
      const endedMs = clock.now();
      const endedAt = timestamps.format(endedMs);
      metrics.onFinished(finished, durationMs);
      filters.onFinished(finished, durationMs);
      recordRequest(finished, durationMs, endedAt);
      audit?.add(toAuditEntry(finished, endedAt));
      const { bucketName } = finished;
      if (!logs.isLogged(bucketName)) return;
      logs.add(bucketName, formatRequestLine(finished, account, { durationMs, endedMs }), endedMs);
    },
    onFault: (fault) => {
      metrics.onFault(fault);
      countFault(fault);
    },
  };
}

function createObjectServer(
  config: VaultConfig,
  { tracer, health, certificates }: Service,
  api: ObjectApi,
  { engine, ids, observer }: { engine: Engine; ids: RequestIds; observer: Observer },
): Server {
  const { onStarted, onFinished, onFault } = observer;
  const tls = certificates?.current.pairs[0];
  return createServer({
    engine,
    handler: createObjectHandler({
      api,
      ids,
      tracer,
      answerProbe: createProbes(health),
      onStarted,
      onFinished,
    }),
    composeRefusal: (refused, path) => answerRefusal(refused, path, ids),
    isProxyAddress: (address) => api.trustedProxies.has(address),
    limits: {
      connectionsMax: config.max_connections,
      ...(config.max_connections_per_address === undefined
        ? {}
        : { connectionsPerAddressMax: config.max_connections_per_address }),
      bodyBytesMax: BODY_BYTES_MAX,
      targetBytesMax: TARGET_BYTES_MAX,
      fieldsMax: FIELDS_MAX,
    },
    paces: {
      requestBody: { bytesMin: config.body_pace_bytes, windowMs: config.body_pace_window_ms },
      answer: { bytesMin: config.answer_pace_bytes, windowMs: config.answer_pace_window_ms },
    },
    onFault,
    ...(tls === undefined ? {} : { tls: { fallback: tls } }),
  });
}

async function listen(
  config: VaultConfig,
  { certificates, lifecycle }: Service,
  server: Server,
): Promise<number> {
  const address = restrictAddress(config.addr, config);
  const { host, port } = address;
  await server
    .listen(host === undefined ? { port } : { host, port })
    .catch(async (error: unknown) => {
      throw await explainListenError(error, address, "--port or PLATFORM_VAULT_ADDR");
    });
  certificates?.follow(lifecycle, ({ pairs: [pair] }) => server.setTls({ fallback: pair! }));
  const bound = server.address() as { host: string; port: number };
  lifecycle.reportListener({ name: "http", host: host ?? bound.host, port: bound.port });
  return bound.port;
}

function createProbes(health: HealthRegistry) {
  const toAnswer = ({ status, body }: HealthAnswer): S3Answer => ({
    status,
    headers: [["Content-Type", "application/json"]],
    body: JSON.stringify(body),
  });
  return (path: string): S3Answer | Promise<S3Answer> | undefined => {
    if (path === "/healthz") return toAnswer(health.live());
    return path === "/readyz" ? health.ready().then(toAnswer) : undefined;
  };
}
