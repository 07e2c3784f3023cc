// The client: keeps a connection to the relay, dials again after a loss, and serves the relay's streams.
import { randomBytes } from "node:crypto";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { VERSION } from "../config.ts";
import { FrameType, type FrameTypeId, GoAwayCode, ResetCode, WireError } from "../frame/format.ts";
import {
  readEvent,
  readWelcome,
  type RequestEvents,
  type TunnelOffer,
  type Welcome,
} from "../frame/messages.ts";
import { ReceiveBudget } from "../frame/receive-budget.ts";
import { Session } from "../frame/session.ts";
import type { SessionEnd, SessionListener } from "../frame/session-contract.ts";
import type { Stream } from "../frame/stream.ts";
import { DialError, dialRelay } from "./dial.ts";
import { connectLocally } from "./local-stream.ts";
import type { ServiceTarget } from "./target.ts";

/** A tunnel that the client serves. */
export interface ServedTunnel {
  readonly offer: TunnelOffer;
  readonly target: ServiceTarget;
}

/** Events of the client for its user interface. */
export interface ClientListener {
  /** Connected, or connected again. Names may have been refused. */
  onWelcome(welcome: Welcome): void;
  /** Finished requests. */
  onRequests(events: RequestEvents): void;
  /** The connection was lost or refused; the next attempt follows after `retryMs`. */
  onLost(reason: string, retryMs: number): void;
  /** The relay will not serve this client any more. */
  onRefused(reason: string): void;
}

/** Options of {@link TunnelClient}. */
export interface TunnelClientOptions {
  relay: string;
  token: string | undefined;
  ca: string | undefined;
  key: string;
  tunnels: readonly ServedTunnel[];
  listener: ClientListener;
  /** 0 to 1, for jitter. */
  random?: () => number;
}

const STREAMS_MAX = 1_024;
const DIAL_MS = 10_000;
const SWEEP_MS = 1_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;
/** Longest wait that a relay can ask for. */
const RETRY_AFTER_MAX_MS = 600_000;
/** Refusals that dialing again does not change. */
const FINAL_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 426]);

/**
 * One client.
 *
 * ```text
 *   dialing --101--> greeting --WELCOME--> serving --lost--> waiting --delay--> dialing
 *      \--refused (4xx) at the first attempt, replaced, removed--> ended
 * ```
 */
export class TunnelClient {
  readonly #options: TunnelClientOptions;
  readonly #budget = new ReceiveBudget();
  readonly #instance = randomBytes(12).toString("base64url");
  readonly #stopping = new AbortController();
  readonly #sweep: RepeatingTimer;
  readonly #ended = Promise.withResolvers<void>();
  #sessions = new Set<Session>();
  #attempts = 0;
  #connections = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TunnelClientOptions) {
    this.#options = options;
    this.#sweep = every(
      SWEEP_MS,
      () => {
        for (const session of this.#sessions) session.sweep();
      },
      () => {},
    );
  }

  /** Resolves when the client has stopped or was refused. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Starts dialing. */
  start(): void {
    void this.#dial();
  }

  /** Announces the end to the relay, lets requests finish for `graceMs`, then closes. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    for (const session of this.#sessions) session.goAway(GoAwayCode.Draining, "the client stops");
    const deadlineMs = performance.now() + graceMs;
    while (this.#countStreams() > 0 && performance.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const session of this.#sessions) session.close(GoAwayCode.Draining, "the client stops");
    await this.#sweep.stop();
    this.#ended.resolve();
  }

  async #dial(): Promise<void> {
    const { relay, token, ca } = this.#options;
    const { signal } = this.#stopping;
    try {
      const dialed = await dialRelay({ relay, token, ca, timeoutMs: DIAL_MS, signal });
      if (signal.aborted) dialed.socket.destroy();
      else this.#greet(dialed);
    } catch (error) {
      if (signal.aborted) return;
      const failure = error instanceof DialError ? error : new DialError(String(error));
      if (this.#connections === 0 && FINAL_STATUSES.has(failure.status)) {
        this.#refuse(failure.message);
        return;
      }
      this.#retry(failure.message, failure.retryAfterSeconds * 1_000);
    }
  }

  #greet(dialed: Awaited<ReturnType<typeof dialRelay>>): void {
    const connection = new Connection(this.#options.tunnels, this.#options.listener, {
      onWelcome: () => {
        this.#attempts = 0;
      },
      onLeaving: (session, code, reason) => this.#onLeaving(session, code, reason),
      onLost: (session, end) => this.#onLost(session, end),
    });
    const session = new Session({
      ...dialed,
      role: "client",
      listener: connection,
      budget: this.#budget,
      streamsMax: STREAMS_MAX,
    });
    connection.session = session;
    this.#sessions.add(session);
    session.sendMessage(FrameType.Hello, {
      client: `platform-tunnel/${VERSION}`,
      key: this.#options.key,
      instance: this.#instance,
      reconnects: this.#connections,
      events: true,
      streams_max: STREAMS_MAX,
      tunnels: this.#options.tunnels.map(({ offer }) => offer),
    });
    session.ping();
    this.#connections++;
  }

  /** The relay opens no more streams: the next connection is opened while requests finish on this one. */
  #onLeaving(session: Session, code: number, reason: string): void {
    if (!isFinal(code)) {
      this.#retry(reason, 0);
      return;
    }
    this.#refuse(reason);
    session.destroy();
  }

  #onLost(session: Session, end: SessionEnd): void {
    this.#sessions.delete(session);
    // After GOAWAY the next connection is being opened already.
    if (session.peerLeaves || this.#stopping.signal.aborted) return;
    this.#retry(end.reason, 0);
  }

  /** Full jitter: clients that were lost together do not come back together. */
  #retry(reason: string, leastMs: number): void {
    const { random = Math.random, listener } = this.#options;
    const bound = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** this.#attempts);
    this.#attempts = Math.min(this.#attempts + 1, 16);
    const least = Math.min(leastMs, RETRY_AFTER_MAX_MS);
    const delayMs = Math.round(Math.max(least, random() * bound));
    listener.onLost(reason, delayMs);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#dial(), delayMs);
  }

  #refuse(reason: string): void {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    for (const session of this.#sessions) session.destroy();
    void this.#sweep.stop();
    this.#options.listener.onRefused(reason);
    this.#ended.resolve();
  }

  #countStreams(): number {
    let count = 0;
    for (const session of this.#sessions) count += session.streams;
    return count;
  }
}

interface ConnectionHooks {
  onWelcome: () => void;
  onLeaving: (session: Session, code: number, reason: string) => void;
  onLost: (session: Session, end: SessionEnd) => void;
}

/** One connection's events. */
class Connection implements SessionListener {
  session: Session | null = null;
  readonly #tunnels: readonly ServedTunnel[];
  readonly #listener: ClientListener;
  readonly #hooks: ConnectionHooks;
  #isWelcome = false;

  constructor(tunnels: readonly ServedTunnel[], listener: ClientListener, hooks: ConnectionHooks) {
    this.#tunnels = tunnels;
    this.#listener = listener;
    this.#hooks = hooks;
  }

  onMessage(type: FrameTypeId, payload: Buffer): void {
    if (type === FrameType.Event) {
      this.#listener.onRequests(readEvent(payload));
      return;
    }
    if (this.#isWelcome) throw new WireError("unexpected_frame", "a second WELCOME");
    const welcome = readWelcome(payload);
    if (welcome.tunnels.length !== this.#tunnels.length) {
      throw new WireError("bad_payload", "WELCOME.tunnels: not one for each tunnel of HELLO");
    }
    this.#isWelcome = true;
    this.#hooks.onWelcome();
    this.#listener.onWelcome(welcome);
  }

  onOpen(stream: Stream, number: number): void {
    // Only targets of the own command line or file are served, whatever the relay asks for.
    const tunnel = this.#tunnels[number];
    if (tunnel === undefined) stream.reset(ResetCode.UnknownTunnel);
    else connectLocally(stream, tunnel.target, tunnel.offer.kind === "http");
  }

  onGoAway(code: number, reason: string): void {
    this.#hooks.onLeaving(this.session!, code, reason);
  }

  onClose(end: SessionEnd): void {
    this.#hooks.onLost(this.session!, end);
  }
}

function isFinal(code: number): boolean {
  return (
    code === GoAwayCode.Replaced || code === GoAwayCode.Removed || code === GoAwayCode.Unauthorized
  );
}
