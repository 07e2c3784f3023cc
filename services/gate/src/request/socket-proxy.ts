// Proxies internal routes to the sockets of the gateway's main thread: the control plane, and the console on this listener.
import {
  compilePlan,
  createUpstreamPool,
  type Engine,
  type ForwardFailure,
  type ForwardObserver,
  type ForwardTarget,
  type HeadWriter,
} from "@platform/http1";
import { CUT_FIELDS } from "../route/plan-cache.ts";
import {
  CONSOLE_CLIENT_HEADER,
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
  type ConsoleSpec,
  type GlobalSpec,
} from "../shared-state/index.ts";
import { answerProblem } from "../exchange/answers.ts";
import type { GateExchange, RequestState } from "../exchange/exchange.ts";

const CALLER_PREFIX = Buffer.from(`${CONTROL_CALLER_HEADER}: `);
const CLIENT_PREFIX = Buffer.from(`${CONSOLE_CLIENT_HEADER}: `);
/** Each open page keeps a WebSocket or two, and each tail one. */
const CONSOLE_CONNECTIONS_MAX = 1_024;
/** The console's own limits end first, so that its errors are the ones that are seen. */
const CONSOLE_RESPONSE_MS = 3_600_000;

/** Destination of requests, and what is written into their heads. */
interface SocketTarget {
  readonly target: ForwardTarget;
  writeFields(writer: HeadWriter, state: RequestState): void;
  /** For people, while it does not respond. */
  readonly unavailable: string;
}

/** Proxies to the control plane, with a secret that proves that the request passed the guard, and its caller. */
export function createControlProxy(engine: Engine, control: GlobalSpec["control"]): SocketProxy {
  return new SocketProxy({
    target: {
      pool: createUpstreamPool({
        engine,
        addresses: [{ path: control.socketPath }],
        connectionsMax: 64,
        idleMax: 8,
      }),
      plan: compilePlan({
        removeRequestFields: [...CUT_FIELDS, "Authorization"],
        addRequestFields: [[CONTROL_SECRET_HEADER, control.secret]],
      }),
    },
    writeFields: (writer, state) => writer.fieldAfter(CALLER_PREFIX, describeCaller(state)),
    unavailable: "The gateway's control plane is not responding.",
  });
}

/** Proxies to the console, with the address of the client. */
export function createConsoleProxy(engine: Engine, { socketPath }: ConsoleSpec): SocketProxy {
  return new SocketProxy({
    target: {
      pool: createUpstreamPool({
        engine,
        addresses: [{ path: socketPath }],
        connectionsMax: CONSOLE_CONNECTIONS_MAX,
        idleMax: 8,
      }),
      plan: compilePlan({
        removeRequestFields: [...CUT_FIELDS, "Authorization"],
        timeouts: { responseHeadMs: CONSOLE_RESPONSE_MS },
      }),
    },
    writeFields: (writer, { forwarding }) =>
      writer.fieldAfter(CLIENT_PREFIX, forwarding.clientAddress),
    unavailable: "The console is not responding.",
  });
}

/** Proxies to one socket. {@link close} it when another one replaces it. */
export class SocketProxy implements ForwardObserver<RequestState> {
  readonly #to: SocketTarget;

  constructor(to: SocketTarget) {
    this.#to = to;
  }

  /** Forwards a request that may pass; `userData.caller` identifies the caller. */
  start(exchange: GateExchange): void {
    exchange.forward(this.#to.target, this);
  }

  /** Closes the pool once its requests are done, after `drainMs` at the latest. */
  close(drainMs: number): void {
    void this.#to.target.pool.drain(drainMs);
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    const state = exchange.userData;
    writer.raw(state.forwarding.lines);
    state.ids.write(writer);
    this.#to.writeFields(writer, state);
  }

  onFailure(exchange: GateExchange, failure: ForwardFailure): ForwardTarget | null {
    const state = exchange.userData;
    if (exchange.aborted) return null;
    if (failure.kind === "reset-on-idle" && state.isIdempotent && !state.wasRefreshed) {
      state.wasRefreshed = true;
      return this.#to.target;
    }
    answerProblem(exchange, "unavailable", this.#to.unavailable);
    return null;
  }
}

function describeCaller({ caller }: RequestState): string {
  if (caller.kind !== "user") return caller.kind;
  const kind = caller.isReader === true ? "reader" : "user";
  return `${kind} ${encodeURIComponent(caller.claims.sub ?? "")}`;
}
