// Sends requests again without their clients: a stored response is revalidated while its client already has it
// (RFC 5861 section 3).
import type { RequestHead } from "@platform/http1";
import { detachRequest } from "../../exchange/detached-request.ts";
import {
  type CompiledRoute,
  type GateExchange,
  RequestState,
  type Step,
} from "../../exchange/exchange.ts";
import type { MetricBlock } from "../../shared-state/index.ts";

/** Most of them at one time in one worker. */
const IN_FLIGHT_MAX = 64;
/** Fields that belong to the client's connection, to its body, or to what the client has stored itself. */
const CLIENT_FIELD =
  /^(?:connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|content-length|upgrade|expect|range|if-.*|cache-control|pragma)$/i;

/** Handles a request head without a client: see `Server.handleDetached`. */
export type HandleDetached = (head: Buffer, state: RequestState, onClosed: () => void) => void;

/** The requests without clients of one worker. */
export class DetachedRequests {
  /** Set once the worker's server listens. */
  handle: HandleDetached | undefined;
  readonly #block: MetricBlock;
  #inFlight = 0;

  constructor(block: MetricBlock) {
    this.#block = block;
  }

  /**
   * Sends a GET again, beginning with `step`. Returns false, without any effect, if too many are in flight, or if it
   * cannot be repeated. `onUnbegun` is called if it ends before that step.
   */
  start(exchange: GateExchange, route: CompiledRoute, step: Step, onUnbegun: () => void): boolean {
    const { head } = exchange;
    const isRepeatable = head.minor === 1 && head.pathEnd > head.pathStart;
    if (this.handle === undefined || this.#inFlight >= IN_FLIGHT_MAX || !isRepeatable) return false;
    const detached = detachRequest(exchange, route, step);
    const state = new RequestState();
    state.detached = detached;
    this.#inFlight++;
    this.#block.addCounter("cacheDetached", 1);
    this.handle(composeHead(head), state, () => {
      this.#inFlight--;
      if (!detached.hasBegun) onUnbegun();
    });
    return true;
  }
}

function composeHead({ bytes, pathStart, targetEnd, fields }: RequestHead): Buffer {
  let text = `GET ${bytes.toString("latin1", pathStart, targetEnd)} HTTP/1.1\r\nConnection: close\r\n`;
  for (let index = 0; index < fields.count; index++) {
    // Fields that the client's Connection names end with its connection.
    if (fields.isNominated(index)) continue;
    const name = fields.name(index);
    if (!CLIENT_FIELD.test(name)) text += `${name}: ${fields.value(index)}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}
