// A tunnel with a connected client: its streams as a pool of keep-alive connections, and the rewriting of its requests.
import {
  compilePlan,
  createUpstreamPool,
  FORWARDING_FIELDS,
  type Engine,
  type ForwardTarget,
  type UpstreamPool,
  type UpstreamStream,
  type UpstreamStreamEvents,
} from "@platform/http1";
import type { TunnelRow } from "../database/schema.ts";
import type { TunnelOffer } from "../frame/messages.ts";
import type { Session } from "../frame/session.ts";
import type { Stream } from "../frame/stream.ts";
import { TunnelStream } from "./tunnel-stream.ts";

/** Options of {@link ConnectedTunnel}. */
export interface ConnectedTunnelOptions {
  engine: Engine;
  session: Session;
  row: TunnelRow;
  offer: TunnelOffer;
  /** Its number on the connection. */
  number: number;
  /** Most requests at the same time. */
  streamsMax: number;
  responseTimeoutMs: number;
}

/**
 * Idle streams are closed before the usual local servers close theirs (Node and uvicorn after 5 s), so that a request
 * rarely meets a closed connection.
 */
const IDLE_MS = 4_000;
const WAITING_MAX = 1_024;
const CUT_FIELDS = [...FORWARDING_FIELDS, "traceparent", "tracestate"];

/** Fields of a request that belong to the relay and must not reach the target. */
export interface Stripping {
  readonly cookie: boolean;
  readonly authorization: boolean;
}

/** One tunnel of a connected client. */
export class ConnectedTunnel {
  readonly row: TunnelRow;
  readonly offer: TunnelOffer;
  readonly number: number;
  readonly session: Session;
  readonly #pool: UpstreamPool;
  readonly #options: ConnectedTunnelOptions;
  readonly #targets = new Map<string, ForwardTarget>();
  readonly #streams = new Set<TunnelStream>();

  constructor(options: ConnectedTunnelOptions) {
    this.#options = options;
    this.row = options.row;
    this.offer = options.offer;
    this.number = options.number;
    this.session = options.session;
    this.#pool = createUpstreamPool({
      engine: options.engine,
      addresses: [{ path: options.row.id }],
      openStream: (events) => this.#openStream(events),
      connectionsMax: options.streamsMax,
      idleMax: options.streamsMax,
      idleTimeoutMs: IDLE_MS,
      waitingMax: WAITING_MAX,
    });
  }

  /** Target of requests whose fields `strip` are removed. */
  targetFor(strip: Stripping): ForwardTarget {
    const key = `${strip.cookie}${strip.authorization}`;
    let target = this.#targets.get(key);
    if (target === undefined) {
      target = { pool: this.#pool, plan: this.#compile(strip) };
      this.#targets.set(key, target);
    }
    return target;
  }

  /** Opens a stream outside of the pool, for one request; null if the client carries too many. */
  openStream(): Stream | null {
    return this.session.openStream(this.number, "");
  }

  /** Fails the requests that wait for a response; those that receive one continue. */
  failAwaiting(): void {
    for (const stream of this.#streams) if (stream.isAwaiting) stream.abandon("SILENT");
  }

  /** The client is gone or no longer serves the tunnel. */
  close(): void {
    this.#pool.close();
  }

  /** Finishes the requests in flight. */
  drain(deadlineMs: number): Promise<void> {
    return this.#pool.drain(deadlineMs);
  }

  #openStream(events: UpstreamStreamEvents): UpstreamStream | null {
    const stream = this.openStream();
    if (stream === null) return null;
    const opened = new TunnelStream(stream, events, (closed) => this.#streams.delete(closed));
    this.#streams.add(opened);
    return opened;
  }

  #compile(strip: Stripping): ForwardTarget["plan"] {
    const { host_header: host } = this.offer;
    return compilePlan({
      host: host === "preserve" ? "keep" : { value: host },
      removeRequestFields: [
        ...CUT_FIELDS,
        ...(strip.cookie ? ["Cookie"] : []),
        ...(strip.authorization ? ["Authorization"] : []),
      ],
      removeResponseFields: ["Set-Cookie"],
      // Idle event streams may stay open: a lost client is noticed by its session.
      timeouts: { responseHeadMs: this.#options.responseTimeoutMs, bodyIdleMs: 0 },
    });
  }
}
