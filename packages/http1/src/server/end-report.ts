// Reports the end of requests to the handler.
import type { RequestEnd, RequestOutcome } from "../contract/exchange.ts";
import type { ForwardTarget } from "../contract/forward.ts";
import type { ForwardClient } from "../forward/client.ts";

/** The end of the current request of one connection; reused. */
export class EndReport implements RequestEnd {
  outcome: RequestOutcome = "complete";
  status = 0;
  bytesIn = 0;
  bytesOut = 0;
  upstreamMs = -1;
  totalMs = 0;
  attempts = 0;
  target: ForwardTarget | null = null;

  /** Ends a request that was not forwarded. */
  sendOwn<U>(exchange: ForwardClient<U>, outcome: RequestOutcome): void {
    if (exchange.onEnd === null) return;
    this.send(exchange, outcome, exchange.host.engine.now(), -1, 0, null);
  }

  /** Calls `onEnd` unless it has been called for this request. Its exceptions go to the server. */
  send<U>(
    exchange: ForwardClient<U>,
    outcome: RequestOutcome,
    nowMs: number,
    upstreamMs: number,
    attempts: number,
    target: ForwardTarget | null,
  ): void {
    const { onEnd } = exchange;
    if (onEnd === null) return;
    exchange.onEnd = null;
    this.outcome = outcome;
    this.status = exchange.status;
    this.bytesIn = exchange.bytesIn;
    this.bytesOut = exchange.bytesOut;
    this.upstreamMs = upstreamMs;
    this.totalMs = nowMs - exchange.startedAtMs;
    this.attempts = attempts;
    this.target = target;
    try {
      onEnd(exchange, this);
    } catch (error) {
      exchange.host.onHandlerError(error, exchange);
    }
  }
}
