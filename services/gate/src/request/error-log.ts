// Logs the errors that the gateway itself responds with, so that a trace id in a response leads to its reason.
import type { RequestEnd } from "@platform/http1";
import type { GateExchange } from "../exchange/exchange.ts";

const SECOND_MS = 1000;
/** Lines per second and worker: a flood of invalid requests must not fill the log. */
const LINES_PER_SECOND = 20;
const PATH_CHARACTERS_MAX = 512;

/** Writes a line to the log of the process. */
export type WriteLine = (
  level: "info" | "warn",
  msg: string,
  fields: Record<string, string | number>,
) => void;

/** The log of one worker. */
export class ErrorLog {
  readonly #write: WriteLine;
  readonly #readNowMs: () => number;
  #secondEndsMs = 0;
  #lines = 0;
  #omitted = 0;

  constructor(write: WriteLine, readNowMs: () => number) {
    this.#write = write;
    this.#readNowMs = readNowMs;
  }

  /** Logs a request that has ended with a response of the gateway; others are ignored. */
  note(exchange: GateExchange, end: RequestEnd): void {
    const state = exchange.userData;
    if (state.code === "" || !this.#admit()) return;
    this.#write(end.status >= 500 ? "warn" : "info", "request refused", {
      trace_id: state.ids.traceId,
      status: end.status,
      duration_ms: end.totalMs,
      code: state.code,
      detail: state.detail,
      method: state.sentMethod,
      path: state.sentPath.slice(0, PATH_CHARACTERS_MAX),
      client_ip: state.forwarding.clientAddress,
      request_id: state.ids.requestId,
      ...(state.target === null ? {} : { upstream: state.target.url }),
      ...(this.#omitted === 0 ? {} : { omitted_lines: this.#omitted }),
    });
    this.#omitted = 0;
  }

  #admit(): boolean {
    const nowMs = this.#readNowMs();
    if (nowMs >= this.#secondEndsMs) {
      this.#secondEndsMs = nowMs + SECOND_MS;
      this.#lines = 0;
    }
    this.#lines++;
    if (this.#lines <= LINES_PER_SECOND) return true;
    this.#omitted++;
    return false;
  }
}
