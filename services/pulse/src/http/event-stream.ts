// Subscribing by server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
import type { ServerResponse } from "node:http";
import {
  bytes,
  alreadyAnswered,
  defineRoute,
  findOutflow,
  type ApiRoute,
  type Guard,
} from "@platform/kernel/http";
import { PlatformError } from "@platform/kernel/errors";
import type { Caller } from "@platform/kernel/identity";
import { plainAddress } from "../connection/transport.ts";
import { ADMIN_SCOPE, scopeOf } from "../topic/rights.ts";
import type { Message } from "../message/message.ts";
import { ReadAhead } from "../dispatch/read-ahead.ts";
import type { Sink } from "../dispatch/subscription.ts";
import { admitSubscriber } from "./admission.ts";
import type { MessageFrames } from "./message-frames.ts";
import type { Subscribers, SubscriberStream } from "./subscribers.ts";
import {
  openSubscription,
  readSubscribeRequest,
  type OpenSubscription,
  type SubscribeOptions,
} from "./subscribe-request.ts";

/** Longest position in a header field: servers and clients accept 8 to 16 KiB of fields in all. */
const POSITION_CHARS_MAX = 4_096;

/** Options of the event stream route. */
export interface EventStreamOptions extends SubscribeOptions {
  subscribers: Subscribers;
  frames: MessageFrames;
  guard: Guard;
  origins: readonly string[];
}

/** The route for subscriptions by server-sent events. */
export function createEventStreamRoute(options: EventStreamOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/subscribe/{topic}",
    summary: "Subscribe to a topic or a pattern by server-sent events",
    description:
      "`group` joins a shared subscription; `from` is earliest, latest or an offset. With `ack=manual` messages are " +
      "acknowledged by POST /api/v1/ack or POST /api/v1/nack within `ack_wait_ms`, at most `prefetch` at a time. " +
      "The field `Last-Event-ID` of the answer is the position before the first message. " +
      "Browsers may send their token as `access_token`.",
    tag: "Subscribe",
    answer: bytes("text/event-stream"),
    problems: {
      429: "The user has too many subscribers",
      503: "The limit of subscribers is reached",
    },
    // EventSource cannot set headers, so the caller is authenticated below, where the query is available.
    // The token may also be in the query or in a cookie.
    access: "public",
    requires: [scopeOf("subscribe"), ADMIN_SCOPE],
    handle: async (exchange) => {
      const { searchParams } = new URL(exchange.request.url);
      const { guard, origins, subscribers } = options;
      const caller = await admitSubscriber(guard, exchange, searchParams, origins);
      options.admission.requireRight(caller, "subscribe");
      const topic = exchange.params["topic"]!;
      const lastEventId = exchange.headers.get("last-event-id");
      const request = readSubscribeRequest(topic, searchParams, lastEventId);
      const response = exchange.rawResponse;
      if (response === undefined)
        throw new PlatformError("internal", "The request has no connection.");
      if (response.closed) return alreadyAnswered();
      response.once("close", subscribers.admit(caller));
      const stream = new EventStream(response, subscribers, options.frames);
      const opened = await openSubscription(options, caller, request, stream);
      stream.begin(opened, caller);
      return alreadyAnswered();
    },
  });
}

/** One stream of events. Until `begin` it accepts nothing, so that errors can still be answered. */
class EventStream implements Sink, SubscriberStream {
  readonly transport = "sse";
  readonly remoteAddress: string;
  readonly readAhead: ReadAhead;
  readonly #response: ServerResponse;
  readonly #subscribers: Subscribers;
  readonly #frames: MessageFrames;
  #opened: OpenSubscription | undefined;
  #isClosed = false;

  constructor(response: ServerResponse, subscribers: Subscribers, frames: MessageFrames) {
    this.remoteAddress = plainAddress(response.socket?.remoteAddress);
    this.readAhead = new ReadAhead(findOutflow(response.socket));
    this.#response = response;
    this.#subscribers = subscribers;
    this.#frames = frames;
  }

  begin(opened: OpenSubscription, caller: Caller): void {
    this.#opened = opened;
    const response = this.#response;
    const position = opened.subscription?.position() ?? "";
    response.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Accel-Buffering": "no",
      "X-Content-Type-Options": "nosniff",
      // Clients that lose the connection before the first message continue from here.
      ...(position === "" || position.length > POSITION_CHARS_MAX
        ? {}
        : { "Last-Event-ID": position }),
    });
    response.flushHeaders();
    response.on("drain", opened.pump);
    response.on("close", () => this.#close());
    this.#subscribers.add(this, caller, opened.isAllowed, opened.name);
    if (response.destroyed || response.closed) this.#close();
    opened.pump();
  }

  canSend(): boolean {
    return this.#opened !== undefined && !this.#isClosed && !this.#response.writableNeedDrain;
  }

  send(message: Message, done: () => void): void {
    const { subscription } = this.#opened!;
    const id =
      subscription === undefined
        ? `${message.partition}:${message.offset}`
        : subscription.positionAfter(message);
    this.#response.write(this.#frames.event(message, id), (error) => {
      if (error === null || error === undefined) done();
    });
  }

  end(reason: string): void {
    this.drop(reason);
  }

  isStalled(): boolean {
    return this.#response.writableNeedDrain;
  }

  ping(): void {
    this.#response.write(": ping\n\n");
  }

  drop(reason: string): void {
    const isStalled = this.isStalled();
    this.#response.end(`event: dropped\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.#close();
    // Unsent data will not be sent any more.
    if (isStalled) this.#response.destroy();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#subscribers.remove(this);
    this.#opened?.close();
  }
}
