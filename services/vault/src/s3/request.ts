// One request to the object API, read from the engine's exchange.
import type { Exchange } from "@platform/http1";
import { traceHops, type AddressSet } from "@platform/kernel/network";
import type { TraceContext } from "@platform/kernel/trace";
import type { ReadWindow } from "../model/read-window.ts";
import { AnswerWindow } from "./read-window.ts";
import { type BodySource, ClientGone, RequestBody } from "./request-body.ts";
import { MemoryHold, type RequestMemory } from "./request-memory.ts";
import { RequestFields } from "./wire/fields.ts";
import { readQuery, type RequestQuery } from "./wire/query.ts";

/** Options of reading requests. */
export interface RequestOptions {
  /** Proxies whose forwarded headers are trusted. */
  trustedProxies: AddressSet;
  memory: RequestMemory;
}

/** A request as operations see it; the object API and the admin API have one implementation each. */
export interface OperationRequest extends Pick<
  S3Request,
  | "id"
  | "method"
  | "rawPath"
  | "host"
  | "clientAddress"
  | "secure"
  | "fields"
  | "hold"
  | "holdWhenRoom"
  | "release"
  | "watchClient"
  | "trace"
> {
  readonly body: BodySource;
  /** The share of memory for its answer; `undefined` if its sender reads one frame at a time. */
  openWindow(): ReadWindow | undefined;
}

/** A request to the object API. */
export class S3Request implements OperationRequest {
  readonly exchange: Exchange;
  /** Its number on the connection; the exchange serves later requests as well. */
  readonly sequence: number;
  readonly id: string;
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  /** As sent; "" in HTTP/1.0 without a Host. */
  readonly host: string;
  /** The client's Host according to a trusted proxy. */
  readonly forwardedHost: string | undefined;
  /** Address of the client, or the one that a trusted proxy reports. */
  readonly clientAddress: string;
  readonly secure: boolean;
  readonly fields: RequestFields;
  readonly body: RequestBody;
  /** Set when its span has started. */
  trace: TraceContext | undefined;
  readonly #memory: MemoryHold;
  #query: RequestQuery | undefined;

  constructor(exchange: Exchange, id: string, { trustedProxies, memory }: RequestOptions) {
    const { head, connection } = exchange;
    this.exchange = exchange;
    this.#memory = new MemoryHold(memory);
    this.sequence = exchange.sequence;
    this.id = id;
    this.method = head.method;
    this.rawPath = head.pathString();
    this.rawQuery = head.queryString() ?? "";
    this.host = head.hostString() ?? "";
    this.fields = new RequestFields(head.fields.lowerEntries());
    const { remoteAddress } = connection;
    const read = (name: string): string => this.fields.get(name) ?? "";
    const sent = {
      forwardedFor: read("x-forwarded-for"),
      forwarded: read("forwarded"),
      proto: read("x-forwarded-proto"),
      host: read("x-forwarded-host"),
    };
    const { hops, host, proto } = traceHops(remoteAddress, sent, trustedProxies);
    this.forwardedHost = host;
    this.clientAddress = hops[0].address;
    this.secure = connection.secure || proto === "https";
    this.body = new RequestBody(exchange);
  }

  /** The query. Throws InvalidURI. */
  get query(): RequestQuery {
    this.#query ??= readQuery(this.rawQuery);
    return this.#query;
  }

  /** Takes memory for the request. Throws ServiceUnavailable if there is none. */
  hold(bytes: number, tenant: string): void {
    this.#memory.take(bytes, tenant);
  }

  /** Takes memory when it is available; `undefined` if it is immediately. Rejects with ServiceUnavailable after 20 s. */
  holdWhenRoom(bytes: number, tenant: string): Promise<void> | undefined {
    return this.#memory.takeWhenRoom(bytes, tenant);
  }

  /** Releases its memory and cancels its waits. */
  release(): void {
    this.#memory.release();
  }

  /** The share of memory for its answer. */
  openWindow(): ReadWindow {
    return new AnswerWindow(this);
  }

  /** A signal that aborts with ClientGone when the client disconnects, for work between the body and the answer. */
  watchClient(): AbortSignal {
    const controller = new AbortController();
    if (!this.isLive) controller.abort(new ClientGone());
    else this.exchange.onAborted = () => controller.abort(new ClientGone());
    return controller.signal;
  }

  /** True while the client is connected. */
  get isLive(): boolean {
    return !this.exchange.aborted && this.exchange.sequence === this.sequence;
  }
}
