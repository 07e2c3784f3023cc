// The composition root: creates every part and connects them.
import { createHash, hkdfSync } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createEngine, createServer, type Server } from "@platform/http1";
import { formatAddress, isLoopbackAddress, type ListenAddress } from "@platform/kernel/config";
import { createEgress } from "@platform/kernel/egress";
import { AdminFeeds } from "@platform/kernel/feeds";
import { type HealthAnswer, HealthRegistry } from "@platform/kernel/health";
import { listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { explainListenError, type Lifecycle } from "@platform/kernel/lifecycle";
import type { Logger } from "@platform/kernel/log";
import { MetricRegistry, createProcessCollector } from "@platform/kernel/metrics";
import { AddressSet } from "@platform/kernel/network";
import { systemClock } from "@platform/kernel/time";
import { CertificateWatch, pickCertificateFiles } from "@platform/kernel/tls";
import { createServiceTracer } from "@platform/kernel/trace";
import { type Account, Authorizer } from "./access/authorizer.ts";
import { TenantBudgets } from "./access/budget.ts";
import { Directory } from "./access/directory.ts";
import { loadMasterKey, SecretBox } from "./access/secret-box.ts";
import { createAdminAccess } from "./admin/admin-access.ts";
import { createAdminApi } from "./admin/admin-api.ts";
import { requireAdmin } from "./admin/storage-callers.ts";
import { AuditLog } from "./audit/audit-log.ts";
import { toAuditEntry, toCallEntry } from "./admin/audit-entry.ts";
import { isDrive } from "./blob/drive/identity.ts";
import type { KeyProvider } from "./blob/encryption.ts";
import { createCallers } from "./callers.ts";
import { hasDefaultCredentials, toStoreOptions, type VaultConfig, VERSION } from "./config.ts";
import { StoreFolders } from "./disk/files.ts";
import { createDeadLetters } from "./delivery/dead-letters.ts";
import { Delivery } from "./delivery/delivery.ts";
import { createEventPolicy } from "./delivery/event-policy.ts";
import type { Owner } from "./model/bucket.ts";
import { StoreError } from "./model/store-error.ts";
import type { S3Answer } from "./s3/answer.ts";
import { createConnectionMetrics } from "./s3/connection-metrics.ts";
import type { ObjectApi } from "./s3/context.ts";
import { createFigures, createObjectMetrics, REQUEST_METRICS } from "./s3/object-metrics.ts";
import { createObjectHandler } from "./s3/object-server.ts";
import { answerRefusal } from "./s3/refusal-answer.ts";
import { RequestIds } from "./s3/request-ids.ts";
import { createRequestRecorder } from "./s3/request-log.ts";
import { RequestMemory } from "./s3/request-memory.ts";
import { openStore } from "./open-store.ts";
import type { LogOutput } from "./log/log-output.ts";
import { TimestampFormatter } from "./s3/wire/timestamp.ts";
import type { Store } from "./object-store.ts";

/** Options of the service. */
export interface VaultOptions {
  config: VaultConfig;
  log: Logger;
  /** The output of the log. */
  output: LogOutput;
  lifecycle: Lifecycle;
}

const TRACES_FLUSH_MS = 1_000;
/** The body of a request is limited by S3's maximum; a request sets its own limit. */
const BODY_BYTES_MAX = 1_048_576;
const TARGET_BYTES_MAX = 16_384;
/** An object may have 2 KiB of metadata in very short headers. */
const FIELDS_MAX = 512;
/** The time for a body of 5 GiB at 1.5 MB/s; slow bodies are refused by their pace. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
const LOOPBACK = "127.0.0.1";

/** Starts the service. Resolves when both APIs listen. */
export async function startVault({ config, log, output, lifecycle }: VaultOptions): Promise<void> {
  const clock = systemClock;
  const startedMs = clock.monotonicMs();
  const addr = restrictAddress(config.addr, config);
  const adminAddr = restrictAddress(config.admin_addr, config);
  if (hasDefaultCredentials(config)) {
    log.warn("the built-in credentials are in use: every program on this machine has full access", {
      addresses: [addr, adminAddr].map(formatAddress),
      remedy: "set STORE_ACCESS_KEY_ID and STORE_SECRET_ACCESS_KEY",
    });
  }
  const files = pickCertificateFiles(config);
  const certificates = files && new CertificateWatch({ pairs: [files], log });
  const tls = certificates?.current.pairs[0];
  const masterKey =
    config.master_key === undefined
      ? loadMasterKey(join(config.data_dir, "access", "master.key"), holdsStore(config))
      : Buffer.from(config.master_key, "base64");
  const keys = createKeyProvider(masterKey);
  const store = await openStore({ ...toStoreOptions(config), log, keys });
  lifecycle.onDrain("store", () => store.close());

  const directory = new Directory({
    path: join(config.data_dir, "access", "directory.json"),
    box: new SecretBox(masterKey),
    clock,
    rootKey: config.access_key_id,
    onDamage: ({ path, reason }) => {
      log.error("a copy of the users and keys was damaged; the other one is used", {
        path,
        reason,
      });
    },
  });
  const registry = new MetricRegistry();
  const processCollector = createProcessCollector({ service: "vault", version: VERSION });
  registry.collect(processCollector);
  const account = createAccount();
  const owner: Owner = { id: account.canonicalId, displayName: account.displayName };
  await makeDefaultBuckets(config, store, owner);

  const eventPolicy = createEventPolicy(config);
  const delivery = new Delivery({
    outbox: store.events,
    isWanted: ({ bucket, ruleId }) => store.buckets.wantsEvents(bucket, ruleId),
    deadLetters: createDeadLetters({
      path: join(config.data_dir, "events", "dead.jsonl"),
      now: () => clock.now(),
    }),
    fetch: createEgress({ allowedNetworks: config.event_networks }),
    policy: eventPolicy,
    masterKey,
    origin: { region: config.region, ownerId: account.canonicalId },
    log,
    clock,
    random: Math.random,
  });
  lifecycle.onDrain("event delivery", () => delivery.close());

  const callers = createCallers({
    config,
    directory,
    masterKey,
    accountId: account.accountId,
    clock,
    log,
    metrics: registry,
  });
  lifecycle.onDrain("callers", () => callers.close());
  const { verifier } = callers;
  const api: ObjectApi = {
    store,
    authorizer: new Authorizer(account),
    verifier,
    budgets: new TenantBudgets({
      ratePerSecond: config.tenant_rate,
      burst: config.tenant_burst,
      clock,
    }),
    clock,
    log,
    region: config.region,
    domain: config.domain,
    websiteDomain: config.website_domain,
    eventPolicy,
    isUser: (name) => directory.hasUser(name),
    trustedProxies: new AddressSet(config.trusted_proxies),
    memory: new RequestMemory(),
    webIdentity: callers.webIdentity,
  };
  const metrics = createObjectMetrics(registry, store);
  const health = new HealthRegistry({ service: "vault", version: VERSION });
  health.addCheck("store", () => store.check());
  health.addWarning("drives", () => store.describeLostDrives());
  health.addWarning("revocations", callers.describeRevocations);
  const audit = config.enable_audit
    ? new AuditLog({ store, owner, region: config.region, clock, log })
    : undefined;
  if (audit !== undefined) lifecycle.onDrain("audit log", () => audit.close());

  const tracer = createServiceTracer({
    resource: { service: "vault", version: VERSION },
    endpoint: config.otlp_endpoint,
    metrics: registry,
    ids: createIdSource(),
    clock,
  });
  const recordRequest = createRequestRecorder(log, output);
  const engine = createEngine({ unsentBytesMax: config.max_unsent_size });
  const ids = new RequestIds();
  const timestamps = new TimestampFormatter();
  const server = createServer({
    engine,
    handler: createObjectHandler({
      api,
      ids,
      tracer,
      answerProbe: createProbes(health),
      onStarted: metrics.onStarted,
      onFinished: (finished) => {
        const { exchange } = finished.request;
        const durationMs = engine.now() - exchange.startedAtMs;
        const endedAt = timestamps.format(clock.now());
        metrics.onFinished(finished, durationMs);
        recordRequest(finished, durationMs, endedAt);
        audit?.add(toAuditEntry(finished, endedAt));
      },
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
    onFault: (fault) => {
      metrics.onFault(fault);
      countConnectionFault(fault);
    },
    ...(tls === undefined ? {} : { tls: { fallback: tls } }),
  });
  const countConnectionFault = createConnectionMetrics(registry, () => ({
    connections: server.counts.connections,
    unsentBytes: engine.outgoing.heldBytes,
  }));
  await listen(server.listen({ ...toListenOptions(addr) }), addr, "--port or PLATFORM_VAULT_ADDR");
  lifecycle.onDrain("object API", async (context) => {
    await server.drain(context.remainingMs());
    engine.close();
  });

  const access = createAdminAccess({
    config,
    api,
    ids,
    directory,
    tokens: callers.tokens,
    isTls: tls !== undefined,
    readPort: () => readPort(server.address(), addr.port),
    onOperation: (call) => audit?.add(toCallEntry(call, timestamps.format(clock.now()))),
  });
  const { guard } = access;
  const feeds = new AdminFeeds({
    service: "vault",
    version: VERSION,
    figures: createFigures(store),
    registry,
    requests: REQUEST_METRICS,
    health,
    guard,
    access: requireAdmin,
    clock,
    logger: log,
  });
  const admin = createAdminApi({
    ...access,
    api,
    feeds,
    dataDir: config.data_dir,
    directory,
    masterKey,
    delivery,
    metricsToken: config.metrics_token,
    startedMs,
    backupToken: config.backup_token,
    stopping: lifecycle.stopping,
    health,
    metrics: registry,
    logger: log,
    tracer,
    clock,
  });
  const { host, port } = toListenOptions(adminAddr);
  const adminListener = await listen(
    listenHttp({
      address: { host, port },
      fetch: admin.fetch,
      onUpgrade: feeds.onUpgrade,
      isProxyAddress: (address) => api.trustedProxies.has(address),
      metrics: registry,
      requestTimeoutMs: UPLOAD_TIMEOUT_MS,
      ...(tls === undefined ? {} : { tls }),
    }),
    adminAddr,
    "--admin-port or PLATFORM_VAULT_ADMIN_ADDR",
  );
  certificates?.follow(lifecycle, ({ pairs: [pair] }) => {
    server.setTls({ fallback: pair! });
    adminListener.setTls(pair!);
  });
  lifecycle.onDrain("admin API", async (context) => {
    await adminListener.close(context.remainingMs());
    processCollector.close();
    await tracer.shutdown(TRACES_FLUSH_MS);
  });

  // Before the listener, which waits for its connections.
  lifecycle.onDrain("admin feeds", () => feeds.close());
  feeds.start();
  health.setState("ready");
  lifecycle.stopping.addEventListener("abort", () => health.setState("draining"));
  const boundPort = readPort(server.address(), addr.port);
  lifecycle.reportListener({ name: "http", host: toListenOptions(addr).host, port: boundPort });
  lifecycle.reportListener({
    name: "admin",
    host,
    port: adminListener.port ?? port,
  });
}

// The built-in credentials must not be usable from other machines.
function restrictAddress(address: ListenAddress, config: VaultConfig): ListenAddress {
  if (!hasDefaultCredentials(config) || isLoopbackAddress(address)) return address;
  if (address.host === undefined) return { host: LOOPBACK, port: address.port };
  throw new Error(
    `the built-in credentials are allowed on this machine only: set STORE_ACCESS_KEY_ID and STORE_SECRET_ACCESS_KEY to listen on ${formatAddress(address)}`,
  );
}

function toListenOptions(address: ListenAddress): { host: string; port: number } {
  return { host: address.host ?? "::", port: address.port };
}

async function listen<T>(
  listening: Promise<T>,
  address: ListenAddress,
  setting: string,
): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    throw await explainListenError(error, address, setting);
  }
}

// All users belong to one account, which owns every bucket. Its ids do not depend on the keys.
function createAccount(): Account {
  return {
    canonicalId: createHash("sha256").update("platform-vault account").digest("hex"),
    displayName: "platform",
    accountId: "000000000001",
  };
}

function createKeyProvider(masterKey: Buffer): KeyProvider {
  const key = Buffer.from(hkdfSync("sha256", masterKey, "", "platform-vault objects", 32));
  const id = createHash("sha256").update(key).digest("hex").slice(0, 16);
  return { current: () => ({ id, key }), find: (wanted) => (wanted === id ? key : undefined) };
}

async function makeDefaultBuckets(config: VaultConfig, store: Store, owner: Owner): Promise<void> {
  for (const bucket of config.default_buckets) {
    if (store.buckets.find(bucket) !== undefined) continue;
    try {
      await store.buckets.create({ bucket, owner, region: config.region });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      throw new Error(`default_buckets: ${bucket}: ${error.message}`, { cause: error });
    }
  }
}

/** True if the folders contain a store already, whose encrypted objects need its master key. */
function holdsStore({ data_dir: folder, drives }: VaultConfig): boolean {
  return drives.some(isDrive) || existsSync(new StoreFolders(folder).index);
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

function readPort(bound: ReturnType<Server["address"]>, configured: number): number {
  return bound !== null && "port" in bound ? bound.port : configured;
}
