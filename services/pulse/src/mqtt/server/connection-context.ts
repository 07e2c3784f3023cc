// Limits, budgets and parts shared by all connections of an MQTT server.
import type { RevocableToken } from "@platform/kernel/identity";
import type { ByteBudget } from "@platform/kernel/sockets";
import type { Clock } from "@platform/kernel/time";
import type { ByteQuota } from "../../tenant/byte-quota.ts";
import type { Transport } from "../../connection/transport.ts";
import type { UserConnections } from "../../connection/user-connections.ts";
import type { Store } from "../../store/store.ts";
import type { Principal } from "../../user/principal.ts";
import type { MqttPublisher } from "../publishing.ts";
import type { RetainedMessages } from "../retained.ts";
import type { SessionParts } from "../session/session-parts.ts";
import type { Sessions } from "../session/sessions.ts";
import type { FlushQueue } from "./flush-queue.ts";

/** Limits of a connection. */
export interface MqttLimits {
  /** Maximum number of connections over all listeners. Default 20 000. */
  connectionsMax: number;
  /** Maximum per IPv4 address or IPv6 network of 64 bits. Default 2 000. */
  connectionsPerAddressMax: number;
  /** Maximum per user; anonymous clients are one. Default 20 000. */
  connectionsPerUserMax: number;
  /** Largest packet of a client in bytes. */
  packetBytesMax: number;
  /** Messages with QoS 1 and 2 that a client may send before they are acknowledged, and that it is sent. Default 1 000. */
  receiveMaximum: number;
  /** Topic aliases in each direction. Default 64. */
  topicAliasMaximum: number;
  /** Longest session expiry in seconds; also that of MQTT 3.1.1. Default 7 days. */
  sessionExpiryMaxSeconds: number;
  /** Longest keep-alive in seconds; MQTT 5 clients are told. Default 1 h. */
  keepAliveMaxSeconds: number;
  /** A CONNECT must have arrived after this time, in ms. Default 10 s. */
  connectTimeoutMs: number;
  /** Bytes of messages that are being stored, and of large packets that are being received. Default 64 MiB each. */
  publishBytesMax: number;
  /** Bytes that clients have not read. Default 128 MiB. */
  unsentBytesMax: number;
  /** Clients that read nothing for this time are disconnected, in ms. Default 30 s. */
  stallTimeoutMs: number;
}

/** Why the server closed a connection. */
interface MqttFault {
  kind: string;
  remoteAddress: string;
  clientId: string;
  reason: string;
  error?: unknown;
}

/** Shared by all connections. */
export interface ConnectionContext {
  limits: MqttLimits;
  clock: Clock;
  store: Store;
  sessions: Sessions;
  parts: SessionParts;
  publisher: MqttPublisher;
  retained: RetainedMessages;
  quota: ByteQuota;
  /** Large packets being received or handled. */
  packetBudget: ByteBudget;
  flushes: FlushQueue;
  /** Bytes of messages that are being stored. */
  publishing: PublishingBytes;
  users: UserConnections;
  /** Authenticates a client; undefined if it is refused. */
  authenticate(
    transport: Transport,
    user: string | undefined,
    password: Buffer | undefined,
  ): Promise<Principal | undefined>;
  followToken(token: RevocableToken, end: () => void): () => void;
  onPacket(type: string): void;
  onFault(fault: MqttFault): void;
}

/** Bytes of messages that are being stored, of all connections: above the bound no more are read. */
export class PublishingBytes {
  readonly #bytesMax: number;
  readonly #waiting = new Set<() => void>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#waiting.size === 0 || this.isFull) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Calls `wake` once when there is room. */
  whenRoom(wake: () => void): void {
    this.#waiting.add(wake);
  }
}
