// The current forwarded request of a client connection: its attempt, upstream and deadlines.
import type { ForwardObserver, RequestOutcome } from "../contract/exchange.ts";
import type { FailureKind, ForwardTarget } from "../contract/forward.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ConnectionPool } from "../upstream/pool.ts";
import type { ForwardClient } from "./client.ts";
import type { CompiledPlan } from "./plan.ts";
import { ATTEMPTS_MAX } from "./failures.ts";
import { Replay } from "./replay.ts";
import { State } from "./state.ts";

/** A deadline that does not pass. */
export const NEVER: number = Infinity;

/** Decides about a forwarded request as a whole, for the flows of its request and its response. */
export interface ForwardOwner {
  /** The attempt has failed: tries again, or answers with an error. */
  fail(kind: FailureKind, code: string): void;
  /** Tries again instead of passing on a response. */
  tryNext(target: ForwardTarget): void;
  /** The upstream has answered 101, whose head ends at `bytes[at]`. */
  beginTunnel(bytes: Buffer, at: number, length: number): void;
  /** The request was answered otherwise: it ends now, or with the end of the handler's stream. */
  endReplaced(outcome: RequestOutcome): void;
  /** The request has ended: releases everything and reports it. */
  conclude(outcome: RequestOutcome, nowMs?: number): void;
}

/** State that the flows of a forwarded request share. One object per client connection, reused. */
export class ForwardedRequest<U> {
  readonly exchange: ForwardClient<U>;
  observer: ForwardObserver<U> = {};
  target!: ForwardTarget;
  plan!: CompiledPlan;
  state: number = State.Idle;
  /** Connection of the current attempt; null until it is acquired, and after it was released or destroyed. */
  upstream: UpstreamConnection | null = null;
  isUpstreamPaused = false;
  /** Number of attempts, including the current one. */
  attempts = 0;
  startMs = 0;
  /** Start of the current attempt. */
  #attemptStartMs = 0;
  /** Time from the start of the request to the response head of the current attempt; -1 before. */
  upstreamMs = -1;
  totalDeadlineMs = NEVER;
  /** Deadline for the next progress of the upstream. */
  idleDeadlineMs = NEVER;
  /** Body bytes sent so far, as long as another attempt is possible. */
  readonly replay = new Replay();
  /** In the current attempt, the request asks for another protocol. */
  isUpgrade = false;
  /** The head of any attempt was handed to a socket. */
  isHeadSent = false;
  /** In the current attempt, the whole request was handed to the socket. */
  isWholeSent = false;
  /** Number of 1xx responses in the current attempt. */
  informational = 0;

  constructor(exchange: ForwardClient<U>) {
    this.exchange = exchange;
  }

  get pool(): ConnectionPool {
    return this.target.pool as ConnectionPool;
  }

  /** Starts the next request, without an attempt. */
  begin(target: ForwardTarget, observer: ForwardObserver<U>): void {
    const { exchange } = this;
    this.observer = observer;
    this.attempts = 0;
    // Most handlers forward synchronously: then the clock need not be read again.
    this.startMs = exchange.isHandling ? exchange.startedAtMs : exchange.host.engine.now();
    this.isHeadSent = false;
    this.replay.begin();
    this.#setTotalDeadline(target);
  }

  /** Continues after a failed attempt that the handler has not answered. */
  resume(target: ForwardTarget, observer: ForwardObserver<U>): void {
    this.observer = observer;
    this.exchange.answersLater = false;
    this.#setTotalDeadline(target);
  }

  /** The whole request is here, so that it can be sent again after a response has arrived. */
  get isRepeatable(): boolean {
    const { collected, bodyDone, bytesIn } = this.exchange;
    return (collected !== null || (bodyDone && bytesIn === 0)) && this.attempts < ATTEMPTS_MAX;
  }

  /** Starts an attempt, which needs a connection. */
  beginAttempt(target: ForwardTarget): void {
    this.target = target;
    this.plan = target.plan as CompiledPlan;
    this.attempts++;
    this.#attemptStartMs = this.attempts === 1 ? this.startMs : this.exchange.host.engine.now();
    this.upstreamMs = -1;
    this.state = State.Acquiring;
    this.idleDeadlineMs = NEVER;
    this.isUpstreamPaused = false;
    this.informational = 0;
  }

  /** Time from the start of the current attempt to the response head. */
  get attemptMs(): number {
    return this.startMs + this.upstreamMs - this.#attemptStartMs;
  }

  /** Ends the request; its upstream has been released before. */
  end(): void {
    this.state = State.Idle;
    this.idleDeadlineMs = NEVER;
    this.totalDeadlineMs = NEVER;
    this.replay.forget();
  }

  /** The response head must arrive within the plan's timeout. */
  expectHead(): void {
    this.idleDeadlineMs = this.exchange.host.engine.deadlineIn(this.plan.responseHeadMs);
  }

  /** The next bytes of the response must arrive within the plan's timeout. */
  expectContent(): void {
    this.idleDeadlineMs = this.exchange.host.engine.deadlineIn(this.plan.bodyIdleMs);
  }

  #setTotalDeadline(target: ForwardTarget): void {
    const { totalMs } = target.plan as CompiledPlan;
    this.totalDeadlineMs = totalMs === 0 ? NEVER : this.exchange.startedAtMs + totalMs;
  }

  /** Stops reading from the upstream. */
  pauseUpstream(): void {
    if (this.isUpstreamPaused || this.upstream === null) return;
    this.isUpstreamPaused = true;
    this.upstream.socket.pause();
  }

  /** The response is complete, or not needed: keeps the connection if it can be used again. */
  releaseUpstream(isReusable: boolean): void {
    const upstream = this.upstream!;
    if (!isReusable) {
      this.dropUpstream();
      return;
    }
    this.upstream = null;
    // A filter may have held the content in the read that completed it.
    if (this.isUpstreamPaused) {
      this.isUpstreamPaused = false;
      upstream.socket.resume();
    }
    this.pool.release(upstream);
  }

  /** Closes the connection, if there is one. */
  dropUpstream(): void {
    const { upstream } = this;
    this.upstream = null;
    if (upstream === null) return;
    upstream.user = null;
    upstream.destroy();
  }
}
