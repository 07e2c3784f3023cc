// Handles each request of the relay's port: by its host it belongs to the API, to clients, or to a tunnel.
import { HexPool, Known, nameOfMethod, readHostName, type RequestEnd } from "@platform/http1";
import type { AddressSet } from "@platform/kernel/network";
import type { Clock } from "@platform/kernel/time";
import type { Capture } from "../capture/tap.ts";
import type { TunnelRow } from "../database/schema.ts";
import type { CustomDomains } from "../name/custom-domains.ts";
import { classifyHost } from "../name/hosts.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";
import type { Access } from "./access.ts";
import type { Admission } from "./admission.ts";
import { answerTunnelError } from "./answers.ts";
import type { Forwarder } from "./forwarder.ts";
import type { Hub } from "./hub.ts";
import type { RelayExchange } from "./request-state.ts";

/** Options of {@link RequestHandler}. */
export interface RequestHandlerOptions {
  domain: string;
  trusted: AddressSet;
  clock: Clock;
  store: TunnelStore;
  domains: CustomDomains;
  hub: Hub;
  access: Access;
  forwarder: Forwarder;
  /** Undefined if requests are not captured. */
  capture: Capture | undefined;
  /** Handles requests to `/ws/connect`. */
  connect: (exchange: RelayExchange) => void;
  /** Handles requests to the API. */
  serveApi: (exchange: RelayExchange) => void;
  onError: (error: unknown) => void;
}

const CONNECT_PATH = "/ws/connect";

/** Handler of the relay's server. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #hexPool = new HexPool();

  readonly #onEnd = (exchange: RelayExchange, end: RequestEnd): void => {
    this.#options.forwarder.finish(exchange, end);
  };

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  /** Handles one request. */
  handle(exchange: RelayExchange): void {
    const { domain, trusted, domains, store } = this.#options;
    const { head, connection, userData: state } = exchange;
    state.begin();
    exchange.onEnd = this.#onEnd;
    state.ids.read(head.fields, this.#hexPool);
    state.forwarding.read(connection, head, trusted);
    const kind = classifyHost(readHost(exchange), domain);
    switch (kind.kind) {
      case "api":
        if (head.pathString() === CONNECT_PATH) this.#options.connect(exchange);
        else this.#options.serveApi(exchange);
        return;
      case "label":
        this.#route(exchange, store.findLabel(kind.label));
        return;
      case "custom":
        this.#route(exchange, store.find(domains.find(kind.domain) ?? ""));
        return;
      case "unknown":
        this.#route(exchange, undefined);
        return;
      default:
        kind satisfies never;
    }
  }

  #route(exchange: RelayExchange, row: TunnelRow | undefined): void {
    if (row === undefined) {
      answerTunnelError(exchange, "unknown_host");
      return;
    }
    const { access, hub, onError } = this.#options;
    const tunnel = hub.find(row.id);
    if (tunnel === undefined) {
      answerTunnelError(exchange, "tunnel_offline");
      return;
    }
    if (!tunnel.session.isResponsive) {
      answerTunnelError(exchange, "client_unresponsive");
      return;
    }
    const admission = access.admit(exchange, tunnel);
    if (!(admission instanceof Promise)) {
      this.#forward(exchange, row, admission);
      return;
    }
    const { sequence } = exchange;
    admission
      .then((settled) => {
        if (exchange.sequence === sequence && !exchange.aborted) {
          this.#forward(exchange, row, settled);
        }
      })
      .catch((error: unknown) => {
        onError(error);
        if (exchange.sequence === sequence && !exchange.aborted) exchange.destroy();
      });
  }

  #forward(exchange: RelayExchange, row: TunnelRow, admission: Admission): void {
    if (admission.kind === "answered") return;
    const { hub, capture, clock, forwarder } = this.#options;
    const { head, userData: state } = exchange;
    const tunnel = hub.find(row.id);
    if (tunnel === undefined) {
      answerTunnelError(exchange, "tunnel_offline");
      return;
    }
    // Uploads of any size pass: nothing of them is stored here.
    exchange.bodyBytesMax = Infinity;
    state.method =
      nameOfMethod(head.methodId) ?? head.bytes.toString("latin1", head.headStart, head.methodEnd);
    state.path = head.pathString();
    state.startedAtEpochMs = clock.now();
    if (capture !== undefined) {
      state.tap = capture.begin({
        tunnel: row,
        method: state.method,
        path: readForwardedPath(exchange),
        client: state.forwarding.clientAddress,
        startedAt: state.startedAtEpochMs,
      });
    }
    forwarder.start(exchange, tunnel, admission.strip);
  }
}

/** Path with the query that the target receives, without credentials of the relay. */
function readForwardedPath({ head, forwardQuery }: RelayExchange): string {
  if (forwardQuery === null) {
    return head.bytes.toString("latin1", head.pathStart, head.targetEnd);
  }
  return forwardQuery === "" ? head.pathString() : `${head.pathString()}?${forwardQuery}`;
}

function readHost({ head }: RelayExchange): string {
  if (head.authorityStart !== -1) {
    return readHostName(head.bytes.toString("latin1", head.authorityStart, head.authorityEnd));
  }
  return readHostName(head.fields.get(Known.Host) ?? "");
}
