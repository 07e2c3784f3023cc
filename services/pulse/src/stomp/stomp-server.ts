// The STOMP server: limits, authentication, listeners.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import type { TokenStreams } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { MetricRegistry } from "@platform/kernel/metrics";
import { ByteBudget, OutgoingBudget } from "@platform/kernel/sockets";
import type { Clock } from "@platform/kernel/time";
import { ByteQuota } from "../tenant/byte-quota.ts";
import type { ListedConnection } from "../connection/listed-connection.ts";
import { type WireListener, WireListeners } from "../connection/listeners.ts";
import type { Transport } from "../connection/transport.ts";
import { UserConnections } from "../connection/user-connections.ts";
import { WebSocketUpgrades } from "../connection/web-socket-upgrades.ts";
import type { Publisher } from "../publish/publisher.ts";
import { ANONYMOUS, type PasswordVerifier, type Principal } from "../user/principal.ts";
import { MessageEncoder } from "./message-form.ts";
import { StompMetrics } from "./metrics.ts";
import type { SubscriptionParts } from "./open-subscription.ts";
import type { ConnectionContext } from "./server/connection-context.ts";
import { Connection } from "./server/connection.ts";
import type { SessionParts } from "./session.ts";
import { TransactionBytes } from "./transactions.ts";

/** WebSocket subprotocols (stomp.github.io/stomp-specification-1.2.html has none; these are in general use). */
const SUBPROTOCOLS = ["v12.stomp", "v11.stomp", "v10.stomp"];
/** Credentials with which clients of other brokers come by default; valid on this machine only. */
const BUILT_IN = { login: "guest", passcode: "guest" };
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_MAX = 120;
const LINE_BYTES_MAX = 16 * 1024;
const HEAD_BYTES_MAX = 64 * 1024;
const FRAME_BUDGET_BYTES = 64 * 1024 * 1024;
const TRANSACTION_BUDGET_BYTES = 128 * 1024 * 1024;
const UNSENT_BYTES_MAX = 128 * 1024 * 1024;
const SUBSCRIPTIONS_MAX = 100_000;
/** Interval of checks: heart-beats are sent one each second at most. */
const SWEEP_MS = 500;

/** Limits of the server over all listeners. */
interface StompLimits {
  connectionsMax: number;
  /** Per IPv4 address or IPv6 network of 64 bits. */
  connectionsPerAddressMax: number;
  /** Per user; clients without credentials are one. */
  connectionsPerUserMax: number;
  /** Connections without heart-beats and subscriptions are closed after this time without a frame, in ms. */
  idleTimeoutMs: number;
  /** Clients that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
  /** Default 100 000. */
  subscriptionsMax?: number;
  /** Bytes that clients have not read. Default 128 MiB. */
  unsentBytesMax?: number;
  /** Bytes of open transactions. Default 128 MiB. */
  transactionBytesMax?: number;
}

/** Options of a `StompServer`. */
export interface StompServerOptions extends SubscriptionParts {
  publisher: Publisher;
  clock: Clock;
  metrics: MetricRegistry;
  log: Logger;
  /** Users with passwords, and tokens as passwords. */
  credentials: PasswordVerifier;
  /** Ends the connections of clients whose token is revoked. */
  tokenStreams: TokenStreams;
  /** Whether clients on this machine may connect without credentials or with the built-in ones, as the operator. */
  anonymous: "loopback" | "never";
  /** Largest message. */
  messageBytesMax: number;
  /** Bytes per second that each tenant may send; 0 for no limit. */
  sendBytesPerSecond: number;
  limits: StompLimits;
}

/**
 * Serves STOMP 1.0, 1.1 and 1.2:
 *
 *     const stomp = new StompServer(options);
 *     const { port } = await stomp.listen({ host: "127.0.0.1", port: 61613 });
 *     …
 *     await stomp.close(2_000); // before the store
 */
export class StompServer {
  readonly #listeners: WireListeners;
  readonly #upgrades: WebSocketUpgrades;
  /** Messages of STOMP clients since startup. */
  readonly counts = { published: 0 };

  constructor(options: StompServerOptions) {
    const { limits, log } = options;
    const subscriptionCount = { current: 0, max: limits.subscriptionsMax ?? SUBSCRIPTIONS_MAX };
    const metrics = new StompMetrics(options.metrics, log, {
      listeners: () => this.#listeners,
      subscriptions: () => subscriptionCount.current,
      messages: () => this.counts.published,
    });
    const parts: SessionParts = {
      topics: options.topics,
      subscriptions: options.subscriptions,
      groups: options.groups,
      deadLetters: options.deadLetters,
      ackWaitMs: options.ackWaitMs,
      publisher: options.publisher,
      clock: options.clock,
      quota: new ByteQuota(options.clock, options.sendBytesPerSecond),
      transactionBytes: new TransactionBytes(
        limits.transactionBytesMax ?? TRANSACTION_BUDGET_BYTES,
      ),
      subscriptionCount,
      counts: this.counts,
    };
    const context: ConnectionContext = {
      parts,
      encoder: new MessageEncoder(),
      frameLimits: {
        headersMax: HEADERS_MAX,
        lineBytesMax: LINE_BYTES_MAX,
        headBytesMax: HEAD_BYTES_MAX,
        bodyBytesMax: options.messageBytesMax,
      },
      frameBudget: new ByteBudget(FRAME_BUDGET_BYTES),
      users: new UserConnections(limits.connectionsPerUserMax),
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      idleTimeoutMs: limits.idleTimeoutMs,
      authenticate: (transport, login, passcode) =>
        authenticate(options, transport, login, passcode),
      followToken: (token, end) => options.tokenStreams.add(token, end),
      onFrame: (command) => metrics.countFrame(command),
      onThrottled: () => metrics.countThrottled(),
      onFault: (fault) => metrics.noteFault(fault),
    };
    const connect = (transport: Transport) => new Connection(transport, context);
    this.#listeners = new WireListeners({
      connectionsMax: limits.connectionsMax,
      connectionsPerAddressMax: limits.connectionsPerAddressMax,
      outgoing: new OutgoingBudget(limits.unsentBytesMax ?? UNSENT_BYTES_MAX),
      stallTimeoutMs: limits.stallTimeoutMs,
      sweepMs: SWEEP_MS,
      connect,
      onError: (error) => log.error("checking STOMP connections failed", { error }),
    });
    this.#upgrades = new WebSocketUpgrades(this.#listeners, {
      subprotocols: SUBPROTOCOLS,
      framing: "messages",
      messageBytesMax: options.messageBytesMax + HEAD_BYTES_MAX,
      connect,
    });
  }

  get connectionCount(): number {
    return this.#listeners.connectionCount;
  }

  /** The connections after this number, in the order in which they were opened. */
  listConnections(after: number): Iterable<ListedConnection> {
    return this.#listeners.list(after);
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<WireListener> {
    return this.#listeners.listen(address, tls);
  }

  /** Handles an upgrade request that offers a subprotocol of STOMP; false for any other. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    return this.#upgrades.handle(request, socket, head);
  }

  /** Ends the connections of clients that have lost the right for a topic that they follow. */
  endForbidden(): void {
    this.#listeners.endForbidden();
  }

  /** Stops listening, finishes the frames in flight, tells the clients, and disconnects after `graceMs`. */
  close(graceMs: number): Promise<void> {
    return this.#listeners.close(graceMs);
  }
}

async function authenticate(
  { credentials, anonymous }: StompServerOptions,
  { isLocal }: Transport,
  login: string | undefined,
  passcode: string | undefined,
): Promise<Principal | undefined> {
  const isGiven = login !== undefined || passcode !== undefined;
  const principal = isGiven
    ? await credentials.verifyPassword(login ?? "", passcode ?? "")
    : undefined;
  if (principal !== undefined) return principal;
  if (anonymous === "never" || !isLocal) return undefined;
  const isBuiltIn = login === BUILT_IN.login && passcode === BUILT_IN.passcode;
  if (isGiven && !isBuiltIn) return undefined;
  return ANONYMOUS;
}
