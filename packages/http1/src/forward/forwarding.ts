// Forwards one exchange to an upstream: attempts, failures, deadlines. Reused across requests.
import type { ForwardObserver, RequestOutcome } from "../contract/exchange.ts";
import type { FailureKind, ForwardFailure, ForwardTarget } from "../contract/forward.ts";
import { Known } from "../parse/index.ts";
import {
  type AcquireFailure,
  type Acquirer,
  Reuse,
  type ReuseKind,
  chooseReuse,
} from "../upstream/acquire.ts";
import type { UpstreamConnection, UpstreamUser } from "../upstream/connection.ts";
import { prepareProblem } from "../write/problem.ts";
import type { ForwardClient } from "./client.ts";
import { ATTEMPTS_MAX, codeOf, detailOf, statusOf } from "./failures.ts";
import { ForwardedRequest, type ForwardOwner, NEVER } from "./forwarded-request.ts";
import { writeInformationalHead } from "./heads.ts";
import { RequestFlow } from "./request-flow.ts";
import { ResponseFlow } from "./response-flow.ts";
import { State } from "./state.ts";
import { TunnelFlow } from "./tunnel-flow.ts";

/**
 * Forwards the requests of one client connection.
 *
 * ```text
 *   Idle --start--> Acquiring --connection--> Sending --head--> Answering --content--> Idle
 *                       ^                        |   \--101--> Tunnel --closed--> Idle
 *                       \------another try------ Failing --own stream--> Replaced --end--> Idle
 * ```
 *
 * - Idle: no upstream, no deadline, `onEnd` has been called.
 * - Acquiring: in the pool's queue, no upstream. All others up to Failing: `upstream.user` is this object.
 * - Each request leaves Idle once and is concluded once, however many attempts it had.
 */
export class Forwarding<U> implements UpstreamUser, Acquirer, ForwardOwner {
  waitingSinceMs = 0;
  reuse: ReuseKind = Reuse.Any;

  readonly #exchange: ForwardClient<U>;
  readonly #request: ForwardedRequest<U>;
  readonly #requestFlow: RequestFlow<U>;
  readonly #responseFlow: ResponseFlow<U>;
  #tunnel: TunnelFlow<U> | null = null;
  /** Outcome of a request that its handler answers instead, later or with a stream. */
  #replacedOutcome: RequestOutcome = "complete";

  constructor(exchange: ForwardClient<U>) {
    this.#exchange = exchange;
    this.#request = new ForwardedRequest(exchange);
    this.#requestFlow = new RequestFlow(this.#request, this);
    this.#responseFlow = new ResponseFlow(this.#request, this);
  }

  /** True while a request or its tunnel is active. */
  get isBusy(): boolean {
    return this.#request.state !== State.Idle;
  }

  start(target: ForwardTarget, observer: ForwardObserver<U>): void {
    const request = this.#request;
    if (request.state === State.Replaced && this.#awaitsAnswer && request.isRepeatable) {
      request.resume(target, observer);
      this.#try(target, false);
      return;
    }
    if (this.isBusy) throw new Error("This exchange is being forwarded already");
    this.#request.begin(target, observer);
    this.#requestFlow.begin();
    this.#try(target, false);
  }

  tryNext(target: ForwardTarget): void {
    this.#try(target, false);
  }

  onAcquired(connection: UpstreamConnection): void {
    this.#request.upstream = connection;
    this.#request.state = State.Sending;
    connection.user = this;
    this.#requestFlow.send(connection);
  }

  onAcquireFailed(kind: AcquireFailure, code: string): void {
    this.fail(kind, code);
  }

  onUpstreamBytes(bytes: Buffer, length: number): void {
    try {
      this.#responseFlow.take(bytes, length);
    } catch (error) {
      this.#exchange.failHandler(error);
    }
  }

  onUpstreamEnd(): void {
    const { state } = this.#request;
    if (state === State.Sending) this.#failUnanswered("");
    else if (state === State.Answering) this.#responseFlow.onUpstreamEnd();
  }

  onUpstreamClosed(code: string): void {
    const request = this.#request;
    if (request.state === State.Sending) {
      this.#failUnanswered(code);
      return;
    }
    request.upstream = null;
    if (request.state === State.Answering) this.#responseFlow.truncate();
  }

  onUpstreamDrain(): void {
    this.#requestFlow.onDrain();
  }

  /** The client's write buffer has drained. */
  onClientDrain(): void {
    this.#tunnel?.onClientDrain();
    this.#responseFlow.onClientDrain();
  }

  /** The client's socket has closed. */
  onClientGone(): void {
    if (this.#tunnel !== null) {
      this.#tunnel.end(false);
      return;
    }
    if (this.#request.state === State.Failing) return;
    this.#releaseAttempt();
    this.conclude("client-aborted");
  }

  /** The handler's own response, sent instead of the upstream's, is complete. */
  onOwnAnswer(): void {
    const { state } = this.#request;
    if (state === State.Replaced) this.conclude(this.#replacedOutcome);
    else if (state === State.Answering) {
      this.#request.dropUpstream();
      this.conclude("complete");
    } else return;
    this.#exchange.finish();
  }

  onTunnelInput(bytes: Buffer, start: number): void {
    this.#tunnel?.onClientBytes(bytes, start);
  }

  onTunnelClientEnd(): void {
    this.#tunnel?.onClientEnd();
  }

  /** Releases everything without reporting an end: the exchange is answered in another way. */
  abandon(): void {
    if (!this.isBusy) return;
    this.#releaseAttempt();
    this.#close();
    this.#exchange.detachSink();
  }

  /**
   * Gracefully ends an endless response: an event stream after a chunk, a WebSocket by Close frames to both sides. False
   * for any other response or tunnel.
   */
  endStream(): boolean {
    if (this.#responseFlow.endEventStream()) return true;
    return this.#tunnel !== null && this.#tunnel.endGracefully();
  }

  /** Checks the deadlines. */
  sweep(nowMs: number): void {
    const request = this.#request;
    this.#tunnel?.sweep(nowMs);
    if (nowMs >= request.totalDeadlineMs) {
      if (request.state === State.Answering) this.#responseFlow.truncate();
      else this.fail("total-timeout", "");
      return;
    }
    if (nowMs < request.idleDeadlineMs) return;
    request.idleDeadlineMs = NEVER;
    if (request.state === State.Sending) this.fail("response-timeout", "");
    // The client's connection has its own timeouts for slow readers.
    else if (request.state === State.Answering && !request.isUpstreamPaused) {
      this.#responseFlow.truncate();
    }
  }

  fail(kind: FailureKind, code: string): void {
    const exchange = this.#exchange;
    const request = this.#request;
    this.#releaseAttempt();
    request.idleDeadlineMs = NEVER;
    request.state = State.Failing;
    exchange.detachSink();
    const failure: ForwardFailure = {
      kind,
      code,
      target: request.target,
      attempt: request.attempts,
      requestSent: request.isHeadSent,
      replayable: request.replay.isComplete,
      status: statusOf(kind),
    };
    let next: ForwardTarget | null = null;
    try {
      next = request.observer.onFailure?.(exchange, failure) ?? null;
    } catch (error) {
      request.state = State.Idle;
      exchange.failHandler(error);
      return;
    }
    if (exchange.aborted) {
      this.conclude("client-aborted");
      return;
    }
    const mayTry = !exchange.answered && request.replay.isComplete && kind !== "total-timeout";
    if (next !== null && mayTry && request.attempts < ATTEMPTS_MAX) {
      this.#try(next, kind === "reset-on-idle");
      return;
    }
    if (!exchange.answered && !this.#awaitsAnswer)
      exchange.respond(prepareProblem(codeOf(kind), detailOf(kind)));
    this.endReplaced("failed");
  }

  endReplaced(outcome: RequestOutcome): void {
    if (this.#exchange.isStreaming || this.#awaitsAnswer) {
      this.#request.state = State.Replaced;
      this.#request.totalDeadlineMs = NEVER;
      this.#replacedOutcome = outcome;
      return;
    }
    this.conclude(outcome);
    this.#exchange.finish();
  }

  beginTunnel(bytes: Buffer, at: number, length: number): void {
    const exchange = this.#exchange;
    const request = this.#request;
    const { engine } = exchange.host;
    if (!request.isUpgrade || !request.isWholeSent) {
      this.fail("malformed-response", "upgrade_not_asked_for");
      return;
    }
    const upstream = request.upstream!;
    const { parser } = upstream;
    request.upstreamMs = engine.now() - request.startMs;
    request.end();
    request.state = State.Tunnel;
    exchange.beginForwardedAnswer(101, true);
    const { writer } = engine;
    writer.begin();
    writeInformationalHead(writer, parser, request.plan);
    request.observer.onResponseHead?.(exchange, parser, writer, request.attemptMs);
    writer.endHead();
    writer.range(bytes, at, length);
    exchange.flush();
    const isWebSocket = (parser.fields.get(Known.Upgrade) ?? "").toLowerCase() === "websocket";
    const { tunnelIdleMs } = request.plan;
    const tunnel = new TunnelFlow(exchange, upstream, tunnelIdleMs, isWebSocket, () => {
      this.#tunnel = null;
      request.upstream = null;
      exchange.bytesIn = tunnel.bytesIn;
      exchange.bytesOut = tunnel.bytesOut;
      this.conclude("tunnel-closed");
    });
    this.#tunnel = tunnel;
    tunnel.begin(bytes, at, length);
    exchange.becomeTunnel();
    request.observer.onTunnel?.(exchange, tunnel.present());
    // Bytes that the client sent after its request belong to the tunnel.
    exchange.pump();
    tunnel.settleBackPressure();
    if (exchange.host.endsStreams) tunnel.endGracefully();
  }

  conclude(outcome: RequestOutcome, nowMs: number = this.#exchange.host.engine.now()): void {
    const { upstreamMs, attempts, target } = this.#request;
    const exchange = this.#exchange;
    this.#close();
    exchange.endReport.send(exchange, outcome, nowMs, upstreamMs, attempts, target);
  }

  get #awaitsAnswer(): boolean {
    return this.#exchange.answersLater && !this.#exchange.answered;
  }

  #try(target: ForwardTarget, isFresh: boolean): void {
    const request = this.#request;
    request.beginAttempt(target);
    const { head, bodyDone } = this.#exchange;
    const reuse = isFresh ? Reuse.Never : chooseReuse(head.methodId, !bodyDone);
    const connection = request.pool.acquire(this, reuse);
    if (connection !== null) this.onAcquired(connection);
  }

  #failUnanswered(code: string): void {
    const { upstream, informational } = this.#request;
    const hasBegun = upstream?.parser.begun ?? false;
    if (hasBegun || informational > 0) this.fail("malformed-response", code || "truncated_head");
    else if (isReused(upstream)) this.fail("reset-on-idle", code);
    else this.fail("reset", code);
  }

  /** Leaves the pool's queue, or closes the connection. */
  #releaseAttempt(): void {
    const request = this.#request;
    if (request.state === State.Acquiring) request.pool.cancel(this);
    request.dropUpstream();
  }

  #close(): void {
    this.#request.end();
    this.#requestFlow.close();
    this.#responseFlow.close();
  }
}

function isReused(upstream: UpstreamConnection | null): boolean {
  return upstream !== null && (upstream.wasIdle || upstream.requests > 1);
}
