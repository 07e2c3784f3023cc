// The Kafka server: routes, users, groups and listeners.
import { randomBytes } from "node:crypto";
import type { TlsOptions } from "node:tls";
import type { TokenStreams, TokenVerifier } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { GroupCoordinator, type GroupDescription } from "../consumer-group/index.ts";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { ListedConnection } from "../connection/listed-connection.ts";
import type { WireListener } from "../connection/listeners.ts";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { TopicRules } from "../access/topic-rules.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import { BatchShaper } from "../publish/batch-shaper.ts";
import { BatchProducer, type ProduceCounts } from "../publish/produce.ts";
import type { Schemas } from "../schema/schemas.ts";
import type { Transforms } from "../transform/transforms.ts";
import type { Offsets } from "../store/offsets.ts";
import { ProducerIds } from "../store/producer-ids.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { TenantCounts } from "../tenant/tenant-counts.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topics } from "../topic/topics.ts";
import { groupKey } from "./api/groups.ts";
import { ANONYMOUS } from "../user/principal.ts";
import { GroupRetention } from "./group-retention.ts";
import { KafkaMetrics } from "./metrics.ts";
import { ByteQuota } from "../tenant/byte-quota.ts";
import { createKafkaRoutes } from "./routes.ts";
import { createPasswordStore, type PasswordUser } from "./sasl/credentials.ts";
import type { CredentialStore } from "./sasl/mechanism.ts";
import { createTokenCredentials } from "./sasl/token-credentials.ts";
import { KafkaListeners, type KafkaLimits } from "./server/listener.ts";
import { TopicSettings } from "./topic-settings.ts";
import type { Authentication } from "./server/session.ts";

/** Options of a `KafkaServer`. */
export interface KafkaServerOptions {
  store: Store;
  state: StateTable;
  topics: Topics;
  topicRules: TopicRules;
  offsets: Offsets;
  schemas: Schemas;
  transforms: Transforms;
  deadLetters: DeadLetterWriter;
  backlog: Backlog;
  idSource: IdSource;
  clock: Clock;
  tenantCounts: TenantCounts;
  /** Registry of the server's metrics. */
  metrics: MetricRegistry;
  log: Logger;
  /** Users for SASL PLAIN and SCRAM, and tokens for PLAIN: see `createCredentials`. */
  credentials: CredentialStore;
  /** Ends the connections of clients whose token is revoked. */
  tokenStreams: TokenStreams;
  /** Whether clients on this machine may connect without credentials, as the operator. */
  anonymous: "loopback" | "never";
  /** The address that clients are told; by default the address they connected to. */
  advertised?: { host: string; port: number } | undefined;
  /** True if Metadata creates missing topics, like Kafka's `auto.create.topics.enable`. */
  isAutoCreating: boolean;
  /** Largest message: key, value and headers, in bytes. */
  messageBytesMax: number;
  /** Maximum bytes of batches in the answer to a Fetch; always at least one batch. Default 8 MiB. */
  fetchBytesMax?: number;
  limits?: Partial<KafkaLimits>;
  /** Bytes per second that each tenant may write and read; 0, the default, for no limit. */
  quotas?: { produceBytesPerSecond: number; fetchBytesPerSecond: number };
  /** Retention of groups without members, in ms; 0, the default, for ever. */
  groupRetentionMs?: number;
}

/** Largest record batch, as received: equal to the largest body of the HTTP API, below the limit of the log. */
const BATCH_BYTES_MAX = 10 * 1024 * 1024;
const FETCH_BYTES_MAX_DEFAULT = 8 * 1024 * 1024;

/** Durable identity of the broker for its clients. */
interface Identity {
  clusterId: string;
  saltKey: string;
}

/**
 * Serves the Kafka protocol on any number of listeners:
 *
 *     const kafka = await KafkaServer.open(options);
 *     const { port } = await kafka.listen({ host: "127.0.0.1", port: 9092 });
 *     …
 *     await kafka.close(2_000); // before the store
 */
export class KafkaServer {
  readonly #server: KafkaListeners;
  readonly #groups: GroupCoordinator;
  readonly #retention: GroupRetention;
  /** Counts of records written by Kafka clients since startup. */
  readonly counts: ProduceCounts;

  private constructor(
    server: KafkaListeners,
    groups: GroupCoordinator,
    retention: GroupRetention,
    counts: ProduceCounts,
  ) {
    this.#server = server;
    this.#groups = groups;
    this.#retention = retention;
    this.counts = counts;
  }

  /** The connections after this number, in the order in which they were opened. */
  listConnections(after: number): Iterable<ListedConnection> {
    return this.#server.list(after);
  }

  /** A consumer group with members; undefined without members. */
  describeGroup(tenant: Tenant, name: string): GroupDescription | undefined {
    return this.#groups.describe(groupKey(tenant, name));
  }

  /** Creates the server without a listener. Rejects with errors of the log. */
  static async open(options: KafkaServerOptions): Promise<KafkaServer> {
    const { store, state, topics, offsets, clock, log } = options;
    const { clusterId, saltKey } = await readIdentity(store, state);
    const groups: GroupCoordinator = new GroupCoordinator({
      onEmpty: (key) => retention.noteEmpty(key),
    });
    const retention = new GroupRetention({
      offsets,
      groups,
      clock,
      retentionMs: options.groupRetentionMs ?? 0,
      onError: (error) => log.error("forgetting unused groups failed", { error }),
    });
    const { produceBytesPerSecond = 0, fetchBytesPerSecond = 0 } = options.quotas ?? {};
    const shaper = new BatchShaper(options);
    const { messageBytesMax, tenantCounts } = options;
    const sizes = { messageBytesMax, batchBytesMax: BATCH_BYTES_MAX };
    const producer = new BatchProducer(store, shaper, BATCH_BYTES_MAX, tenantCounts);
    const routes = createKafkaRoutes(
      {
        topics,
        topicRules: options.topicRules,
        store,
        producer,
        producerIds: ProducerIds.open(store, state),
        settings: new TopicSettings(store, state, topics, sizes),
        offsets,
        backlog: options.backlog,
        groups,
        clusterId,
        isAutoCreating: options.isAutoCreating,
        fetchBytesMax: options.fetchBytesMax ?? FETCH_BYTES_MAX_DEFAULT,
        quotas: {
          produce: new ByteQuota(clock, produceBytesPerSecond),
          fetch: new ByteQuota(clock, fetchBytesPerSecond),
        },
      },
      options.credentials,
      Buffer.from(saltKey, "hex"),
    );
    const metrics = new KafkaMetrics(options.metrics, log, {
      listeners: () => server,
      records: () => producer.counts.published,
    });
    const server: KafkaListeners = new KafkaListeners({
      routes,
      limits: options.limits ?? {},
      ...(options.advertised === undefined ? {} : { advertised: options.advertised }),
      admit: (isLocal) => admit(isLocal, options.anonymous),
      followToken: (token, end) => options.tokenStreams.add(token, end),
      onRequest: (name, _version, durationMs) => metrics.observeRequest(name, durationMs),
      onSurplus: (name) => metrics.countSurplus(name),
      onFault: (fault) => metrics.noteFault(fault),
    });
    retention.start();
    return new KafkaServer(server, groups, retention, producer.counts);
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<WireListener> {
    return this.#server.listen(address, tls);
  }

  /** Stops listening, lets requests in flight finish for at most `graceMs`, then disconnects. */
  async close(graceMs: number): Promise<void> {
    await this.#retention.stop();
    this.#groups.close();
    await this.#server.close(graceMs);
  }
}

/**
 * The users of wire protocols. `users` have unique names; `verifier` verifies tokens, which may be the password for any name
 * that is not a user.
 */
export function createCredentials(
  users: readonly PasswordUser[],
  verifier: TokenVerifier | undefined,
  topicRules: Pick<TopicRules, "rightsOf">,
): CredentialStore {
  const passwords = createPasswordStore(users);
  return verifier === undefined
    ? passwords
    : createTokenCredentials(passwords, verifier, topicRules);
}

function admit(isLocal: boolean, anonymous: "loopback" | "never"): Authentication {
  if (anonymous === "never" || !isLocal) return { state: "demanded" };
  return { state: "done", principal: ANONYMOUS, isAnonymous: true };
}

async function readIdentity(store: Store, state: StateTable): Promise<Identity> {
  const found = state.take("kafka-identity")[0];
  if (found !== undefined) return readJson(found.value) as Identity;
  const identity: Identity = {
    clusterId: randomBytes(16).toString("base64url"),
    saltKey: randomBytes(32).toString("hex"),
  };
  await store.append([state.toPendingJson(["kafka-identity"], identity)]);
  return identity;
}
