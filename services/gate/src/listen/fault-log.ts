// Counts faults that occur before a request reaches the handler, and logs file descriptor exhaustion.
import type { Engine, ServerFault } from "@platform/http1";
import { isDescriptorShortage } from "@platform/kernel/sockets";
import type { MetricBlock, WorkerCounter } from "../shared-state/index.ts";

/** Minimum time between two log lines about descriptor exhaustion. */
const SHORTAGE_LOG_MS = 10_000;

/** Faults of one worker's listener and upstream connections. */
export class FaultLog {
  readonly #block: MetricBlock;
  readonly #engine: Engine;
  readonly #logError: (msg: string, fields: Record<string, string>) => void;
  #loggedMs = -SHORTAGE_LOG_MS;

  constructor(
    block: MetricBlock,
    engine: Engine,
    logError: (msg: string, fields: Record<string, string>) => void,
  ) {
    this.#block = block;
    this.#engine = engine;
    this.#logError = logError;
  }

  /** Counts a fault of the listener. */
  note({ kind, code }: ServerFault): void {
    if (kind !== "socket") this.#count(nameFault(kind, code));
    else if (isDescriptorShortage(code)) this.noteShortage(code, "a client's connection");
    else this.#logError("cannot accept a client connection", { code });
  }

  /** Counts a connection that failed with EMFILE or ENFILE and closes idle upstream connections to free descriptors. */
  noteShortage(code: string, what: string): void {
    this.#count("descriptorErrors");
    this.#engine.closeIdleUpstreams();
    const nowMs = this.#engine.now();
    if (nowMs < this.#loggedMs + SHORTAGE_LOG_MS) return;
    this.#loggedMs = nowMs;
    this.#logError("out of file descriptors", { code, for: what });
  }

  #count(counter: WorkerCounter): void {
    const { values } = this.#block;
    const at = this.#block.findCounter(counter);
    values[at] = values[at]! + 1;
  }
}

function nameFault(kind: Exclude<ServerFault["kind"], "socket">, code: string): WorkerCounter {
  switch (kind) {
    case "malformed-request":
    case "head-timeout":
    case "tls-handshake":
      return "badRequests";
    case "slow-body":
      return "slowBodies";
    case "slow-reader":
      return code === "over-budget" ? "unsentDropped" : "slowReaders";
    case "too-many-connections":
      return "shed";
    case "too-many-of-address":
      return "addressRefused";
    default:
      return kind satisfies never;
  }
}
