// Sends copies of requests to mirrors, bounded in number and memory. Their responses are thrown away.
import { Agent, request as requestHttp, type RequestOptions } from "node:http";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import type { MetricBlock } from "../shared-state/index.ts";

const IN_FLIGHT_MAX = 128;
const BYTES_MAX = 33_554_432;
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

/** The mirrors of one worker. */
export class MirrorSender {
  readonly #block: MetricBlock;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX });
  readonly #tlsAgent = new TlsAgent({ keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX });
  #inFlight = 0;
  #bytes = 0;

  constructor(block: MetricBlock) {
    this.#block = block;
  }

  /** Takes a place for one copy; false, and counted, if there is none. {@link leave} gives it back. */
  enter(): boolean {
    if (this.#inFlight >= IN_FLIGHT_MAX) {
      this.skip();
      return false;
    }
    this.#inFlight++;
    return true;
  }

  /** Gives a place and its memory back. */
  leave(bytes: number): void {
    this.#inFlight--;
    this.#bytes -= bytes;
  }

  /** Takes memory for the body of a copy; false if there is none left. */
  claim(bytes: number): boolean {
    if (this.#bytes + bytes > BYTES_MAX) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Counts a request that is not mirrored because a bound is reached. */
  skip(): void {
    this.#block.addCounter("mirrorSkipped", 1);
  }

  /** Sends a copy; its place is given back when the mirror has responded, or after 10 s. */
  send(origin: URL, head: MirroredHead, body: readonly Buffer[], bytes: number): void {
    const isSecure = origin.protocol === "https:";
    const options: RequestOptions = {
      host: origin.hostname.replace(/^\[|\]$/g, ""),
      port: origin.port === "" ? (isSecure ? 443 : 80) : Number(origin.port),
      method: head.method,
      path: head.target,
      headers: [...head.fields, ...(bytes > 0 ? ["Content-Length", String(bytes)] : [])],
      setHost: false,
      agent: isSecure ? this.#tlsAgent : this.#agent,
    };
    let isOver = false;
    const finish = (counter: "mirrored" | "mirrorFailed"): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      this.#block.addCounter(counter, 1);
      this.leave(bytes);
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
}
