// The listeners of the Kafka server and their limits: connections, requests, answers, idle time.
import type { TlsOptions } from "node:tls";
import { ByteBudget, OutgoingBudget } from "@platform/kernel/sockets";
import type { ListedConnection } from "../../connection/listed-connection.ts";
import { type WireListener, WireListeners } from "../../connection/listeners.ts";
import { CountedUser, UserConnections } from "../../connection/user-connections.ts";
import { AnswerRoom } from "./answer-room.ts";
import type { ConnectionContext, ConnectionFault } from "./connection-context.ts";
import { Connection } from "./connection.ts";
import type { RouteTable } from "./route.ts";
import { describeSession, type Authentication, type Session } from "./session.ts";
import type { FollowToken } from "./token-watch.ts";

const SWEEP_MS = 1_000;
/** Minimum bytes of a request within `stallTimeoutMs`, as for the body of an HTTP request. */
const REQUEST_PACE_BYTES = 7_680;
/** Minimum rate for reading answers. A client that needs longer for half a default partition answer (1 MiB) times out (30 s). */
const ANSWER_PACE = { bytesMin: 524_288, windowMs: 60_000 };

/** Limits of the Kafka server over all listeners. */
export interface KafkaLimits {
  /** Maximum number of connections; further ones are closed immediately. Default 2 000. */
  connectionsMax: number;
  /** Maximum per IPv4 address or IPv6 network of 64 bits; further ones are closed immediately. Default 1 000. */
  connectionsPerAddressMax: number;
  /** Maximum per user; clients without credentials are one. Default 2 000. */
  connectionsPerUserMax: number;
  /** Largest request in bytes. Default 16 MiB. */
  frameBytesMax: number;
  /** Maximum number of elements of all arrays of one request. Default 100 000. */
  arrayItemsMax: number;
  /** Requests of one connection in flight. Default 64. */
  inFlightMax: number;
  /** Bytes of requests over 64 KiB being read or handled. Default 128 MiB. */
  requestBytesMax: number;
  /**
   * Bytes of answers that clients have not read. Beyond it Fetch and other requests with large answers wait, and clients
   * that have read nothing for longest are disconnected. Up to half as much again may be in memory while it is read from
   * the log. Default 128 MiB.
   */
  responseBytesMax: number;
  /** Idle connections are closed after this time, in ms. Default 10 min. */
  idleTimeoutMs: number;
  /** Connections that have sent nothing or are not authenticated are closed after this time, in ms. Default 1 min. */
  authenticationTimeoutMs: number;
  /**
   * Clients that read no answer for this time, or send less than 7.5 KiB of a request within it, are disconnected, in ms.
   * Default 30 s.
   */
  stallTimeoutMs: number;
}

const KAFKA_LIMITS_DEFAULT: KafkaLimits = {
  connectionsMax: 2_000,
  connectionsPerAddressMax: 1_000,
  connectionsPerUserMax: 2_000,
  frameBytesMax: 16 * 1024 * 1024,
  arrayItemsMax: 100_000,
  inFlightMax: 64,
  requestBytesMax: 128 * 1024 * 1024,
  responseBytesMax: 128 * 1024 * 1024,
  idleTimeoutMs: 10 * 60_000,
  authenticationTimeoutMs: 60_000,
  stallTimeoutMs: 30_000,
};

export interface KafkaListenersOptions {
  routes: RouteTable;
  limits?: Partial<KafkaLimits>;
  /** The address that clients are told; by default the address they connected to. */
  advertised?: { host: string; port: number };
  /** Authentication state of a new client, on this machine or another: demanded, or done already. */
  admit(isLocal: boolean): Authentication;
  /** By default tokens are not followed. */
  followToken?: FollowToken;
  onRequest?(name: string, version: number, durationMs: number): void;
  onSurplus?(name: string): void;
  onFault?(fault: ConnectionFault): void;
}

/** Serves the Kafka protocol on any number of listeners with shared limits. */
export class KafkaListeners {
  readonly limits: KafkaLimits;
  readonly #context: ConnectionContext;
  readonly #listeners: WireListeners;

  constructor(options: KafkaListenersOptions) {
    this.limits = { ...KAFKA_LIMITS_DEFAULT, ...options.limits };
    const { responseBytesMax, stallTimeoutMs } = this.limits;
    const outgoing = new OutgoingBudget(responseBytesMax);
    this.#context = {
      routes: options.routes,
      requestBudget: new ByteBudget(this.limits.requestBytesMax),
      readingBudget: new ByteBudget(responseBytesMax / 2),
      outgoing,
      room: new AnswerRoom(outgoing),
      requestPace: { bytesMin: REQUEST_PACE_BYTES, windowMs: stallTimeoutMs },
      idleTimeoutMs: this.limits.idleTimeoutMs,
      authenticationTimeoutMs: this.limits.authenticationTimeoutMs,
      frameBytesMax: this.limits.frameBytesMax,
      arrayItemsMax: this.limits.arrayItemsMax,
      inFlightMax: this.limits.inFlightMax,
      followToken: options.followToken ?? (() => () => undefined),
      onRequest: (name, version, durationMs) => options.onRequest?.(name, version, durationMs),
      onSurplus: (name) => options.onSurplus?.(name),
      onFault: (fault) => options.onFault?.(fault),
    };
    const users = new UserConnections(this.limits.connectionsPerUserMax);
    this.#listeners = new WireListeners({
      connectionsMax: this.limits.connectionsMax,
      connectionsPerAddressMax: this.limits.connectionsPerAddressMax,
      outgoing,
      stallTimeoutMs,
      readingPace: ANSWER_PACE,
      sweepMs: SWEEP_MS,
      connect: (transport) => {
        const { remoteAddress, isLocal } = transport;
        const session: Session = {
          remoteAddress,
          clientId: undefined,
          advertised: options.advertised ?? transport.local,
          authentication: options.admit(isLocal),
          user: new CountedUser(users),
          mutedUntilMs: 0,
        };
        transport.describeClient = () => describeSession(session);
        return new Connection(transport, session, this.#context);
      },
      onError: (error) => {
        const reason = "closing idle connections failed";
        options.onFault?.({ kind: "internal", remoteAddress: "", reason, error });
      },
    });
  }

  get connectionCount(): number {
    return this.#listeners.connectionCount;
  }

  /** The connections after this number, in the order in which they were opened. */
  list(after: number): Iterable<ListedConnection> {
    return this.#listeners.list(after);
  }

  /** Connections closed immediately because of a limit. */
  get refusedCount(): number {
    return this.#listeners.refusedCount;
  }

  /** Bytes of answers that clients have not read. */
  get responseBytes(): number {
    return this.#listeners.unsentBytes;
  }

  /** Bytes of large requests being read or handled. */
  get requestBytes(): number {
    return this.#context.requestBudget.used;
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<WireListener> {
    return this.#listeners.listen(address, tls);
  }

  /** Stops listening, lets requests in flight finish for at most `graceMs`, then disconnects. */
  close(graceMs: number): Promise<void> {
    return this.#listeners.close(graceMs);
  }
}
