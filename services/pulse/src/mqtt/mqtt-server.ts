// The MQTT server: sessions, retained messages and listeners.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import type { TokenStreams } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { ByteBudget, OutgoingBudget } from "@platform/kernel/sockets";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import { ByteQuota } from "../tenant/byte-quota.ts";
import type { ListedConnection } from "../connection/listed-connection.ts";
import { type WireListener, WireListeners } from "../connection/listeners.ts";
import type { Transport } from "../connection/transport.ts";
import { UserConnections } from "../connection/user-connections.ts";
import { WebSocketUpgrades } from "../connection/web-socket-upgrades.ts";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { Feeds } from "../dispatch/feed.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { Subscriptions } from "../dispatch/subscription.ts";
import type { Publisher } from "../publish/publisher.ts";
import type { StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import { ALL_RIGHTS } from "../topic/rights.ts";
import type { Topics } from "../topic/topics.ts";
import { ANONYMOUS, type PasswordVerifier, type Principal } from "../user/principal.ts";
import { MqttMetrics } from "./metrics.ts";
import { MqttPublisher, type MqttCounts } from "./publishing.ts";
import { RetainedMessages } from "./retained.ts";
import {
  PublishingBytes,
  type ConnectionContext,
  type MqttLimits,
} from "./server/connection-context.ts";
import { Connection } from "./server/connection.ts";
import { FlushQueue } from "./server/flush-queue.ts";
import type { SessionParts } from "./session/session-parts.ts";
import { SessionRecords } from "./session/session-records.ts";
import { SessionSaver } from "./session/session-saver.ts";
import type { Session } from "./session/session.ts";
import { Sessions } from "./session/sessions.ts";
import { TopicIndex } from "./session/topic-index.ts";
import { readDestination } from "./topic/filter.ts";
import type { Will } from "./packet/packets.ts";

const TIDY_MS = 60_000;
const SWEEP_MS = 1_000;
/** Bytes that a WebSocket frame may have besides the largest packet: frames are not aligned with packets. */
const FRAME_SLACK_BYTES = 64 * 1024;
/** Bytes of a packet besides payload, key and headers of a message. */
const PACKET_OVERHEAD_BYTES = 64 * 1024;

/** Default limits. `packetBytesMax` follows from the largest message. */
const LIMITS_DEFAULT: Omit<MqttLimits, "packetBytesMax"> = {
  connectionsMax: 20_000,
  connectionsPerAddressMax: 2_000,
  connectionsPerUserMax: 20_000,
  receiveMaximum: 1_000,
  topicAliasMaximum: 64,
  sessionExpiryMaxSeconds: 7 * 24 * 60 * 60,
  keepAliveMaxSeconds: 3_600,
  connectTimeoutMs: 10_000,
  publishBytesMax: 64 * 1024 * 1024,
  unsentBytesMax: 128 * 1024 * 1024,
  stallTimeoutMs: 30_000,
};

/** Options of an `MqttServer`. */
export interface MqttServerOptions {
  store: Store;
  state: StateTable;
  topics: Topics;
  feeds: Feeds;
  subscriptions: Subscriptions;
  groups: SharedSubscriptions;
  backlog: Backlog;
  deadLetters: DeadLetterWriter;
  publisher: Publisher;
  clock: Clock;
  metrics: MetricRegistry;
  log: Logger;
  /** Users with passwords, and tokens as passwords. */
  credentials: PasswordVerifier;
  /** Ends the connections of clients whose token is revoked. */
  tokenStreams: TokenStreams;
  /** Whether clients on this machine may connect without credentials, as the operator. */
  anonymous: "loopback" | "never";
  /** Largest message. */
  messageBytesMax: number;
  /** Time after which a message of a shared subscription goes to another member, in ms. */
  ackWaitMs: number;
  /** Default 100 000. */
  sessionsMax?: number;
  /** Default 100 000. */
  sessionsPerTenantMax?: number;
  /** Default 10 000. */
  subscriptionsPerSessionMax?: number;
  /** Default 100 000. */
  retainedPerTenantMax?: number;
  /** Bytes per second that each tenant may publish; 0, the default, for no limit. */
  publishBytesPerSecond?: number;
  limits?: Partial<MqttLimits>;
}

interface ServerParts {
  counts: MqttCounts;
  listeners: WireListeners;
  upgrades: WebSocketUpgrades;
  sessions: Sessions;
  tidying: RepeatingTimer;
}

/**
 * Serves MQTT 5 and 3.1.1:
 *
 *     const mqtt = await MqttServer.open(options);
 *     const { port } = await mqtt.listen({ host: "127.0.0.1", port: 1883 });
 *     …
 *     await mqtt.close(2_000); // before the store
 */
export class MqttServer {
  readonly counts: MqttCounts;
  readonly #parts: ServerParts;

  private constructor(parts: ServerParts) {
    this.counts = parts.counts;
    this.#parts = parts;
  }

  /** Creates the server without a listener, with its sessions and retained messages. Rejects with errors of the log. */
  static async open(options: MqttServerOptions): Promise<MqttServer> {
    const { store, topics, clock, log } = options;
    const onError = (error: unknown) => log.error("work for MQTT clients failed", { error });
    const retained = await RetainedMessages.open(
      store,
      topics,
      options.retainedPerTenantMax ?? 100_000,
    );
    const publisher = new MqttPublisher(options.publisher, retained, clock);
    const parts = createParts(options, retained, onError);
    const { sessionsMax = 100_000, sessionsPerTenantMax = 100_000 } = options;
    const sessions = new Sessions(parts, { sessionsMax, sessionsPerTenantMax }, (session, will) =>
      publishWill(publisher, session, will),
    );
    await sessions.load();
    const limits = {
      ...LIMITS_DEFAULT,
      packetBytesMax: options.messageBytesMax + PACKET_OVERHEAD_BYTES,
      ...options.limits,
    };
    const context: ConnectionContext = {
      limits,
      clock,
      store,
      sessions,
      parts,
      publisher,
      retained,
      quota: new ByteQuota(clock, options.publishBytesPerSecond ?? 0),
      packetBudget: new ByteBudget(limits.publishBytesMax),
      flushes: new FlushQueue(),
      publishing: new PublishingBytes(limits.publishBytesMax),
      users: new UserConnections(limits.connectionsPerUserMax),
      authenticate: (transport, user, password) => authenticate(options, transport, user, password),
      followToken: (token, end) => options.tokenStreams.add(token, end),
      onPacket: (type) => metrics.countPacket(type),
      onFault: (fault) => metrics.noteFault(fault),
    };
    const connect = (transport: Transport) => new Connection(transport, context);
    const listeners = new WireListeners({
      connectionsMax: limits.connectionsMax,
      connectionsPerAddressMax: limits.connectionsPerAddressMax,
      outgoing: new OutgoingBudget(limits.unsentBytesMax),
      stallTimeoutMs: limits.stallTimeoutMs,
      sweepMs: SWEEP_MS,
      connect,
      onError,
    });
    const upgrades = new WebSocketUpgrades(listeners, {
      subprotocols: ["mqtt"],
      framing: "bytes",
      messageBytesMax: limits.packetBytesMax + FRAME_SLACK_BYTES,
      connect,
    });
    const metrics: MqttMetrics = new MqttMetrics(options.metrics, log, {
      listeners: () => listeners,
      sessions: () => sessions.count,
      subscriptions: () => parts.index.count,
      retained: () => retained.count,
      published: () => publisher.counts.published,
      dropped: () => publisher.counts.dropped,
    });
    const tidying = every(TIDY_MS, () => retained.tidy(clock.now()), onError);
    return new MqttServer({ counts: publisher.counts, listeners, upgrades, sessions, tidying });
  }

  get connectionCount(): number {
    return this.#parts.listeners.connectionCount;
  }

  /** The connections after this number, in the order in which they were opened. */
  listConnections(after: number): Iterable<ListedConnection> {
    return this.#parts.listeners.list(after);
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<WireListener> {
    return this.#parts.listeners.listen(address, tls);
  }

  /** Takes an upgrade request that offers the subprotocol `mqtt`; false for any other. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    return this.#parts.upgrades.handle(request, socket, head);
  }

  /** Ends the connections of clients that have lost the right for a topic that they follow. */
  endForbidden(): void {
    this.#parts.listeners.endForbidden();
  }

  /** Disconnects the clients, at most for `graceMs`, and saves the sessions. */
  async close(graceMs: number): Promise<void> {
    const { tidying, listeners, sessions } = this.#parts;
    await tidying.stop();
    await listeners.close(graceMs);
    await sessions.stop();
  }
}

function createParts(
  options: MqttServerOptions,
  retained: RetainedMessages,
  onError: (error: unknown) => void,
): SessionParts {
  const { store, topics, feeds, subscriptions, groups, backlog, deadLetters, clock } = options;
  const records = new SessionRecords(options.state);
  return {
    store,
    topics,
    feeds,
    subscriptions,
    groups,
    backlog,
    deadLetters,
    clock,
    retained,
    index: new TopicIndex(topics, deadLetters),
    records,
    saver: new SessionSaver(store, records, onError),
    subscriptionsMax: options.subscriptionsPerSessionMax ?? 10_000,
    ackWaitMs: options.ackWaitMs,
    onError,
  };
}

async function authenticate(
  { credentials, anonymous }: MqttServerOptions,
  { isLocal }: Transport,
  user: string | undefined,
  password: Buffer | undefined,
): Promise<Principal | undefined> {
  if (user !== undefined || password !== undefined) {
    return credentials.verifyPassword(user ?? "", password?.toString("utf8") ?? "");
  }
  if (anonymous === "never" || !isLocal) return undefined;
  return ANONYMOUS;
}

/** The topic and the rights for it were checked when the client connected. */
async function publishWill(publisher: MqttPublisher, session: Session, will: Will): Promise<void> {
  const source = {
    tenant: session.identity.tenant,
    rights: ALL_RIGHTS,
    origin: session.origin,
  };
  const destination = readDestination(will.topic, 5);
  if (destination.kind === "topic") await publisher.publish(source, destination.name, will, []);
}
