// One request to the object API, read off the engine's exchange once.
import type { Exchange } from "@platform/http1";
import { findClientAddress, type AddressSet } from "@platform/kernel/network";
import { RequestBody } from "./request-body.ts";
import type { RequestMemory } from "./request-memory.ts";
import { RequestFields } from "./wire/fields.ts";
import { readQuery, type RequestQuery } from "./wire/address.ts";

/** What requests are read with. */
export interface RequestOptions {
  /** Who is believed about whom it speaks for. */
  trustedProxies: AddressSet;
  memory: RequestMemory;
}

/** A request as operations see it. */
export class S3Request {
  readonly exchange: Exchange;
  /** Which of the connection's requests it is; the exchange serves others later. */
  readonly sequence: number;
  readonly id: string;
  readonly method: string;
  readonly rawPath: string;
  readonly rawQuery: string;
  /** As it was sent; "" in HTTP/1.0 without one. */
  readonly host: string;
  /** Host that a trusted proxy says the client used. */
  readonly forwardedHost: string | undefined;
  /** Address of the client, or what a trusted proxy says it is. */
  readonly clientAddress: string;
  readonly secure: boolean;
  readonly fields: RequestFields;
  readonly body: RequestBody;
  readonly #memory: RequestMemory;
  /** Whose memory it holds, once it does. */
  #source = "";
  #heldBytes = 0;
  /** Ends a wait for memory. */
  #waiting: AbortController | undefined;
  #query: RequestQuery | undefined;

  constructor(exchange: Exchange, id: string, { trustedProxies, memory }: RequestOptions) {
    const { head, connection } = exchange;
    this.exchange = exchange;
    this.#memory = memory;
    this.sequence = exchange.sequence;
    this.id = id;
    this.method = head.method;
    this.rawPath = head.pathString();
    this.rawQuery = head.queryString() ?? "";
    this.host = head.hostString() ?? "";
    this.fields = new RequestFields(head.fields.lowerEntries());
    const { remoteAddress } = connection;
    const isTrusted = trustedProxies.has(remoteAddress);
    const read = (name: string): string | undefined =>
      isTrusted ? this.fields.get(name)?.split(",").at(-1)?.trim() : undefined;
    this.forwardedHost = read("x-forwarded-host");
    const chain = isTrusted ? (this.fields.get("x-forwarded-for") ?? "") : "";
    this.clientAddress = findClientAddress(remoteAddress, chain, trustedProxies);
    this.secure = connection.secure || read("x-forwarded-proto") === "https";
    this.body = new RequestBody(exchange);
  }

  /** The query; throws InvalidURI. */
  get query(): RequestQuery {
    this.#query ??= readQuery(this.rawQuery);
    return this.#query;
  }

  /** Takes memory for what the request brings. Throws ServiceUnavailable where there is none left. */
  hold(bytes: number, tenant: string): void {
    this.#memory.take(tenant, bytes);
    this.#source = tenant;
    this.#heldBytes += bytes;
  }

  /** Takes memory once there is room; undefined where there is at once. Rejects with ServiceUnavailable after 20 s. */
  holdWhenRoom(bytes: number, tenant: string): Promise<void> | undefined {
    const waiting = new AbortController();
    const room = this.#memory.takeWhenRoom(tenant, bytes, waiting.signal);
    this.#waiting = waiting;
    const add = (): void => {
      this.#source = tenant;
      this.#heldBytes += bytes;
      // The request may have ended between the end of the wait and now.
      if (waiting.signal.aborted) this.release();
    };
    if (room !== undefined) return room.then(add);
    add();
    return undefined;
  }

  /** Gives back all that it holds, and waits for no more. */
  release(): void {
    this.#waiting?.abort();
    this.#waiting = undefined;
    if (this.#heldBytes === 0) return;
    this.#memory.give(this.#source, this.#heldBytes);
    this.#heldBytes = 0;
  }

  /** Whether there is still somebody to answer. */
  get isLive(): boolean {
    return !this.exchange.aborted && this.exchange.sequence === this.sequence;
  }
}
