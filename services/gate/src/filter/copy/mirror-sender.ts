// Sends copies of requests to mirrors, bounded in number and memory. Their responses are thrown away.
import type { RequestOptions } from "node:http";
import type { LookupFunction } from "node:net";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import type { MetricBlock } from "../../shared-state/index.ts";

// An import reads all exports, of which WebSocket loads undici in each worker: 25 ms of each start.
const { Agent, request: requestHttp } = process.getBuiltinModule("node:http");

const IN_FLIGHT_MAX = 128;
const BYTES_MAX = 33_554_432;
/** Part of both that one mirror may occupy: one that hangs leaves places for the mirrors of other routes. */
const SHARE_MAX = 3 / 4;
const TIMEOUT_MS = 10_000;
const FREE_SOCKETS_MAX = 16;

/** A copy of a request head as an upstream received it. */
export interface MirroredHead {
  method: string;
  /** Path and query. */
  target: string;
  /** Names and values in turn, without framing and connection fields. */
  fields: readonly string[];
}

/** Places and memory in use, by one mirror or by all. */
interface Load {
  copies: number;
  bytes: number;
}

/** The mirrors of one worker. */
export class MirrorSender {
  readonly #block: MetricBlock;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX });
  readonly #tlsAgent = new TlsAgent({ keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX });
  readonly #total: Load = { copies: 0, bytes: 0 };
  readonly #loads = new Map<string, Load>();

  constructor(block: MetricBlock) {
    this.#block = block;
  }

  /** Takes a place for one copy; false, and counted, if there is none. {@link leave} gives it back. */
  enter({ origin }: URL): boolean {
    const load = this.#loads.get(origin) ?? { copies: 0, bytes: 0 };
    if (this.#total.copies >= IN_FLIGHT_MAX || load.copies >= IN_FLIGHT_MAX * SHARE_MAX) {
      this.skip();
      return false;
    }
    this.#loads.set(origin, load);
    this.#change(load, 1, 0);
    return true;
  }

  /** Gives a place and its memory back. */
  leave({ origin }: URL, bytes: number): void {
    const load = this.#loads.get(origin)!;
    this.#change(load, -1, -bytes);
    if (load.copies === 0) this.#loads.delete(origin);
  }

  /** Takes memory for the body of a copy that has a place; false if there is none left. */
  claim({ origin }: URL, bytes: number): boolean {
    const load = this.#loads.get(origin)!;
    const isFull = this.#total.bytes + bytes > BYTES_MAX;
    if (isFull || load.bytes + bytes > BYTES_MAX * SHARE_MAX) return false;
    this.#change(load, 0, bytes);
    return true;
  }

  /** Counts a request that is not mirrored because a bound is reached. */
  skip(): void {
    this.#block.addCounter("mirrorSkipped", 1);
  }

  /** Sends a copy; its place is given back when the mirror has responded, or after 10 s. */
  send(
    origin: URL,
    head: MirroredHead,
    body: readonly Buffer[],
    bytes: number,
    lookup?: LookupFunction,
  ): void {
    const isSecure = origin.protocol === "https:";
    const options: RequestOptions = {
      host: origin.hostname.replace(/^\[|\]$/g, ""),
      port: origin.port === "" ? (isSecure ? 443 : 80) : Number(origin.port),
      method: head.method,
      path: head.target,
      headers: [...head.fields, ...(bytes > 0 ? ["Content-Length", String(bytes)] : [])],
      setHost: false,
      ...(lookup === undefined ? {} : { lookup }),
      agent: isSecure ? this.#tlsAgent : this.#agent,
    };
    let isOver = false;
    const finish = (counter: "mirrored" | "mirrorFailed"): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.#block.addCounter(counter, 1);
      this.leave(origin, bytes);
    };
    const sent = isSecure ? requestHttps(options) : requestHttp(options);
    const timer = setTimeout(() => sent.destroy(new Error("timeout")), TIMEOUT_MS);
    timer.unref();
    sent.on("response", (response) => {
      response.resume();
      response.on("end", () => finish("mirrored"));
      response.on("error", () => undefined);
    });
    sent.on("error", () => finish("mirrorFailed"));
    sent.on("close", () => finish("mirrorFailed"));
    for (const piece of body) sent.write(piece);
    sent.end();
  }

  #change(load: Load, copies: number, bytes: number): void {
    for (const each of [load, this.#total]) {
      each.copies += copies;
      each.bytes += bytes;
    }
  }
}
