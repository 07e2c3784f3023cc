// Connections of clients: `GET /ws/connect`, the WebSocket handshake, and the checks before it.
import { Known, Method, type AnswerHeaders, type Engine } from "@platform/http1";
import {
  createRetryLaterError,
  getProblemHeaders,
  PlatformError,
  toPlatformError,
  toProblem,
} from "@platform/kernel/errors";
import { toRevocable, type Caller, type TokenStreams } from "@platform/kernel/identity";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import { isLoopback } from "@platform/kernel/network";
import { parseTraceContext, type Tracer } from "@platform/kernel/trace";
import type { RelayConfig } from "../config.ts";
import { GoAwayCode, SUBPROTOCOL } from "../frame/format.ts";
import type { ReceiveBudget } from "../frame/receive-budget.ts";
import { computeAccept } from "../frame/websocket.ts";
import { expiryOf, isOperator, type RelayGuard, requireOpening, subjectOf } from "../identity.ts";
import type { CustomDomains } from "../name/custom-domains.ts";
import type { Subjects } from "../name/subjects.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";
import { ClientSession } from "./client-session.ts";
import type { Hub } from "./hub.ts";
import type { RelayExchange } from "./request-state.ts";
import type { Throttles } from "./throttle.ts";
import { admitBearer } from "./throttled-guard.ts";

/** Options of {@link Connector}. */
export interface ConnectorOptions {
  config: RelayConfig;
  guard: RelayGuard;
  throttles: Throttles;
  subjects: Subjects;
  store: TunnelStore;
  domains: CustomDomains;
  hub: Hub;
  engine: Engine;
  budget: ReceiveBudget;
  ids: IdSource;
  log: Logger;
  tracer: Tracer;
  /** Sessions by token, which end when it is revoked. */
  streams: TokenStreams;
  formatUrl: (tunnel: { subdomain: string | null; port: number | null }) => string;
  onReconnected: () => void;
  /** The relay stops: clients must try again later. */
  isDraining: () => boolean;
}

interface Admitted {
  readonly subject: string;
  readonly caller: Caller;
}

/** Accepts clients. */
export class Connector {
  readonly #options: ConnectorOptions;

  constructor(options: ConnectorOptions) {
    this.#options = options;
  }

  /** Handles a request to `/ws/connect`. */
  handle(exchange: RelayExchange): void {
    const { sequence } = exchange;
    const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
    this.#admit(exchange)
      .then((admitted) => {
        if (isOver()) return;
        // Checked and counted in one turn: clients that connect at the same time do not exceed the bounds.
        this.#expectRoom(admitted.subject, isOperator(admitted.caller));
        this.#accept(exchange, admitted);
      })
      .catch((error: unknown) => {
        if (!isOver()) answerProblem(exchange, error);
      });
  }

  async #admit(exchange: RelayExchange): Promise<Admitted> {
    checkHandshake(exchange);
    const { subjects, config } = this.#options;
    const { head, connection } = exchange;
    const request = {
      headers: new Headers([...head.fields.lowerEntries()]),
      method: "GET",
      path: head.pathString(),
      peer: { kind: "tcp", address: connection.remoteAddress },
    } as const;
    const { clientAddress } = exchange.userData.forwarding;
    const caller = await admitBearer(this.#options, request, clientAddress);
    requireOpening(caller, config);
    const subject = subjectOf(caller);
    if (subject === "") throw new PlatformError("forbidden", "The token has no subject (sub).");
    subjects.expectAllowed(subject);
    return { subject, caller };
  }

  #expectRoom(subject: string, isExempt: boolean): void {
    const { config, hub, isDraining } = this.#options;
    if (isDraining()) throw createRetryLaterError("unavailable", "The relay is restarting.", 1);
    if (hub.clients >= config.clients_max) {
      throw createRetryLaterError("overloaded", "The relay has too many clients.", 10);
    }
    if (!isExempt && hub.countOf(subject) >= config.clients_per_subject_max) {
      throw createRetryLaterError(
        "too_many_requests",
        `A subject can have at most ${config.clients_per_subject_max} connected clients.`,
        10,
      );
    }
  }

  #accept(exchange: RelayExchange, { subject, caller }: Admitted): void {
    const { config, ids, log, hub, tracer, budget, streams } = this.#options;
    const { fields } = exchange.head;
    const span = tracer.startSpan({
      name: "tunnel.connect",
      kind: "server",
      parent: parseTraceContext(fields.get(Known.Traceparent), fields.get(Known.Tracestate)),
      attributes: { "platform.subject": subject },
    });
    const { secure, remoteAddress } = exchange.connection;
    const { clientAddress } = exchange.userData.forwarding;
    const { socket, rest } = exchange.takeSocket([
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Accept", computeAccept(fields.get(Known.SecWebsocketKey) ?? "")],
      ["Sec-WebSocket-Protocol", SUBPROTOCOL],
    ]);
    const client = new ClientSession({
      ...this.#options,
      id: ids.uuid(),
      subject,
      expiresAt: expiryOf(caller),
      remoteAddress: clientAddress,
      socket: { socket, rest, budget, isPrivate: secure || isLoopback(remoteAddress) },
      streamsMax: config.streams_per_client_max,
      responseTimeoutMs: config.response_timeout_ms,
      tcpHost: config.tcp_host,
    });
    hub.enter(client);
    if (caller.kind === "user") {
      const end = (): void =>
        client.session.close(GoAwayCode.Unauthorized, "the token was revoked");
      socket.once("close", streams.add(toRevocable(caller.claims), end));
    }
    span.end();
    log.info("client connected", {
      subject,
      session: client.id,
      client: clientAddress,
      trace_id: span.context.traceId,
    });
  }
}

/** Throws unless the request is a WebSocket handshake for the known subprotocol (RFC 6455 section 4.2.1). */
function checkHandshake({ head }: RelayExchange): void {
  const { fields } = head;
  const upgrade = (fields.get(Known.Upgrade) ?? "").toLowerCase();
  if (head.methodId !== Method.GET || !head.upgrade || upgrade !== "websocket") {
    throw new PlatformError("upgrade_required", "Clients connect with a WebSocket.", {
      headers: { Upgrade: "websocket", Connection: "Upgrade" },
    });
  }
  if (fields.has(Known.Origin)) {
    throw new PlatformError("forbidden", "Web pages cannot open tunnels.");
  }
  const key = fields.get(Known.SecWebsocketKey) ?? "";
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key) || fields.get(Known.SecWebsocketVersion) !== "13") {
    throw new PlatformError("bad_request", "The WebSocket handshake is not that of RFC 6455.");
  }
  const offered = (fields.get(Known.SecWebsocketProtocol) ?? "").split(",");
  if (!offered.some((name) => name.trim() === SUBPROTOCOL)) {
    throw new PlatformError(
      "bad_request",
      `The relay speaks the subprotocol ${SUBPROTOCOL}; update the client or the relay.`,
    );
  }
}

/** Answers a request outside the API with a problem document. */
export function answerProblem(exchange: RelayExchange, thrown: unknown): void {
  const error = toPlatformError(thrown);
  const instance = exchange.head.pathString();
  const headers: AnswerHeaders = Object.entries(getProblemHeaders(error)).filter(
    ([name]) => name !== "Connection",
  );
  exchange.respond({
    status: error.status,
    headers,
    body: JSON.stringify(toProblem(error, { instance, traceId: exchange.userData.ids.traceId })),
  });
}
