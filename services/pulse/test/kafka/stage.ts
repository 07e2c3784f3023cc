// A Kafka server with a real log in a temporary folder.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions, TlsOptions } from "node:tls";
import { createIdSource } from "@platform/kernel/ids";
import { systemClock } from "@platform/kernel/time";
import { openLog, openNodeDisk, type Disk, type SyncMode } from "@platform/log";
import { GuestPool } from "@platform/wasm";
import { DeadLetterWriter } from "../../src/deadletter/dead-letter-writer.ts";
import { TopicRules } from "../../src/access/topic-rules.ts";
import { Backlog } from "../../src/dispatch/backlog.ts";
import { GroupCoordinator, type GroupLimits } from "../../src/consumer-group/index.ts";
import type { KafkaBroker } from "../../src/kafka/broker.ts";
import { ByteQuota } from "../../src/tenant/byte-quota.ts";
import { createKafkaRoutes } from "../../src/kafka/routes.ts";
import { createPasswordStore, type PasswordUser } from "../../src/kafka/sasl/credentials.ts";
import type { ConnectionFault } from "../../src/kafka/server/connection-context.ts";
import { KafkaListeners, type KafkaLimits } from "../../src/kafka/server/listener.ts";
import { TopicSettings } from "../../src/kafka/topic-settings.ts";
import { BatchShaper } from "../../src/publish/batch-shaper.ts";
import { BatchProducer } from "../../src/publish/produce.ts";
import { Offsets } from "../../src/store/offsets.ts";
import { ProducerIds } from "../../src/store/producer-ids.ts";
import { StateTable } from "../../src/store/state.ts";
import { Store } from "../../src/store/store.ts";
import { Schemas } from "../../src/schema/schemas.ts";
import { TenantCounts } from "../../src/tenant/tenant-counts.ts";
import { ALL_RIGHTS } from "../../src/topic/rights.ts";
import { Topics } from "../../src/topic/topics.ts";
import { Transforms } from "../../src/transform/transforms.ts";
import { KafkaClient } from "./client.ts";

const BATCH_BYTES_MAX = 8 * 1024 * 1024;

/** Changes to the default options of a staged broker. */
export interface StageOptions {
  limits?: Partial<KafkaLimits>;
  groupLimits?: Partial<GroupLimits>;
  users?: readonly PasswordUser[];
  /** Clients must authenticate, even from this machine. */
  requiresAuthentication?: boolean;
  tls?: TlsOptions;
  isAutoCreating?: boolean;
  /** Sync mode of the log. Default `group`, as in production. */
  sync?: SyncMode;
  advertised?: { host: string; port: number };
  /** Disk of the log. Default: the folder of the stage. */
  disk?: Disk;
  /** Largest message. Default: the largest batch. */
  messageBytesMax?: number;
  /** Bytes per second that a tenant may write, and read. Default: unlimited. */
  bytesPerSecond?: number;
}

/** A running broker; disposing it removes its folder. */
export class KafkaStage implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "pulse-kafka-"));
  readonly faults: ConnectionFault[] = [];
  readonly requests: string[] = [];
  broker!: KafkaBroker;
  /** Schemas and transforms of topics. */
  shaping!: { schemas: Schemas; transforms: Transforms };
  guests!: GuestPool;
  server!: KafkaListeners;
  port = 0;
  readonly #options: StageOptions;
  readonly #clients: KafkaClient[] = [];

  private constructor(options: StageOptions) {
    this.#options = options;
  }

  static async open(options: StageOptions = {}): Promise<KafkaStage> {
    const stage = new KafkaStage(options);
    await stage.#start();
    return stage;
  }

  async connect(tls?: ConnectionOptions): Promise<KafkaClient> {
    const client = await KafkaClient.connect(this.port, tls);
    this.#clients.push(client);
    return client;
  }

  /** Stops gracefully and starts on the same folder and port. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.socket.destroy();
    await this.#stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const {
      users = [],
      requiresAuthentication = false,
      limits = {},
      tls,
      advertised,
      messageBytesMax = BATCH_BYTES_MAX,
    } = this.#options;
    const log = await openLog({
      disk: this.#options.disk ?? openNodeDisk(join(this.folder, "log")),
      sync: this.#options.sync ?? { kind: "group" },
    });
    const store = new Store(log);
    const state = await StateTable.open(store);
    const topics = new Topics(log, { topicsPerTenantMax: 1_000, partitionsMax: 100 });
    this.guests = new GuestPool({ callMsMax: 100 });
    const shaping = {
      schemas: new Schemas(store, state, topics),
      transforms: new Transforms(store, state, topics, this.guests, () => undefined),
      deadLetters: new DeadLetterWriter(store, state, topics),
      idSource: createIdSource(),
      clock: systemClock,
      messageBytesMax,
    };
    this.shaping = shaping;
    const groupLimits = { groupsPerTenantMax: 1_000, offsetsMax: 10_000 };
    this.broker = {
      topics,
      topicRules: new TopicRules(store, state),
      store,
      producer: new BatchProducer(
        store,
        new BatchShaper(shaping),
        BATCH_BYTES_MAX,
        new TenantCounts(),
      ),
      backlog: new Backlog(store, state, topics, 1_000),
      producerIds: ProducerIds.open(store, state),
      settings: new TopicSettings(store, state, topics, {
        messageBytesMax,
        batchBytesMax: BATCH_BYTES_MAX,
      }),
      offsets: Offsets.open(store, state, topics, groupLimits),
      groups: new GroupCoordinator({ limits: this.#options.groupLimits ?? {} }),
      clusterId: "pulse-test-cluster-000",
      isAutoCreating: this.#options.isAutoCreating ?? true,
      fetchBytesMax: 8 * 1024 * 1024,
      quotas: {
        produce: new ByteQuota(systemClock, this.#options.bytesPerSecond ?? 0),
        fetch: new ByteQuota(systemClock, this.#options.bytesPerSecond ?? 0),
      },
    };
    const credentials = createPasswordStore(users);
    this.server = new KafkaListeners({
      routes: createKafkaRoutes(this.broker, credentials, Buffer.alloc(32, 7)),
      limits,
      ...(advertised === undefined ? {} : { advertised }),
      admit: () =>
        requiresAuthentication
          ? { state: "demanded" }
          : {
              state: "done",
              principal: { name: "anonymous", tenant: "", rights: ALL_RIGHTS },
              isAnonymous: true,
            },
      onFault: (fault) => this.faults.push(fault),
      onRequest: (name, version) => this.requests.push(`${name} ${version}`),
    });
    const listener = await this.server.listen({ host: "127.0.0.1", port: this.port }, tls);
    this.port = listener.port;
  }

  async #stop(): Promise<void> {
    this.broker.groups.close();
    await this.server.close(1_000);
    await this.guests.close();
    await this.broker.store.close();
  }
}
