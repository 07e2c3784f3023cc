// One data-plane thread as the control plane sees it: what was sent, what was acknowledged, whether it still speaks.
import { Worker } from "node:worker_threads";
import type { Logger } from "@platform/kernel/log";
import {
  type ApplyMessage,
  type FromWorker,
  type GlobalSpec,
  MetricBlock,
  type RouteKey,
  type RouteSpec,
  type StageMessage,
  type ToWorker,
  type WorkerInit,
  allocateMetricBlock,
} from "../shared-state/index.ts";

/** What a change holds, before it has a number. */
export interface Change {
  globals?: GlobalSpec;
  upsert: readonly RouteSpec[];
  remove: readonly RouteKey[];
}

/** What the readiness probe answers. */
export interface Readiness {
  up: boolean;
  checks: Record<string, string>;
}

/** What became of a change on one worker; `gone`: it ended before it answered. */
export type ChangeOutcome =
  | { kind: "applied" }
  | { kind: "failed"; message: string }
  | { kind: "gone" };

/** What a handle needs. */
export interface WorkerHandleOptions {
  entry: URL;
  init: Omit<WorkerInit, "metrics">;
  log: Logger;
  /** How long an answer to a change may take, and how long the thread may show no life, in ms. */
  silentMs: number;
  stuckMs: number;
  /** How long the thread may take from its start to listening, in ms. */
  startMs: number;
  /** Called once, when the thread has ended, with the reason. */
  onGone: (handle: WorkerHandle, reason: string) => void;
}

const TICK_MS = 100;
/** What each route of a large change adds to the time that it may take. */
const ROUTE_MS = 1;
/** Routes of one message: reading more at a time would hold requests up. */
const PART_ROUTES = 256;
/** How long after its deadline a draining thread may take to say that it is done. */
const DRAIN_GRACE_MS = 500;

interface Waiting {
  seq: number;
  ticksLeft: number;
  settle: (outcome: ChangeOutcome) => void;
}

/** A worker thread and the conversation with it. */
export class WorkerHandle {
  readonly index: number;
  readonly metrics: MetricBlock;
  readonly #options: WorkerHandleOptions;
  readonly #worker: Worker;
  readonly #started = Promise.withResolvers<number>();
  readonly #drained = Promise.withResolvers<number>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #ticker: NodeJS.Timeout;
  #waiting: Waiting[] = [];
  #reopening: (() => void)[] = [];
  #seq = 0;
  /** Changes are sent one after the other. */
  #sending: Promise<unknown> = Promise.resolve();
  #port: number | undefined;
  #hasState = false;
  #startTicksLeft: number;
  #heartbeat = 0;
  #stuckTicks = 0;
  #reason = "";
  #over = false;

  constructor(options: WorkerHandleOptions) {
    const metrics = allocateMetricBlock();
    this.#options = options;
    this.index = options.init.workerIndex;
    this.metrics = new MetricBlock(metrics);
    this.#startTicksLeft = countTicks(options.startMs);
    this.#started.promise.catch(ignoreRejection);
    this.#worker = new Worker(options.entry, {
      workerData: { ...options.init, metrics } satisfies WorkerInit,
    });
    this.#worker.on("message", (message: FromWorker) => this.#receive(message));
    this.#worker.on("error", (error: unknown) => this.#fail(`it threw ${describe(error)}`));
    this.#worker.on("exit", (code) => this.#finish(code));
    // Ticks are counted instead of reading a clock: a machine that slept has not made its workers silent.
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Resolves with the port when the thread listens; rejects where it cannot. */
  get started(): Promise<number> {
    return this.#started.promise;
  }

  /** Resolves when the thread has ended. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** Whether the thread listens with its routes and has not ended. */
  get isLive(): boolean {
    return this.#port !== undefined && this.#hasState && !this.#over;
  }

  /** Sends the first change, which holds everything, and the readiness; `started` waits for both. */
  begin(change: Change, readiness: Readiness): void {
    this.#startTicksLeft += countTicks(change.upsert.length * ROUTE_MS);
    this.send({ type: "readiness", ...readiness });
    void this.apply(change).then((outcome) => {
      this.#hasState = outcome.kind === "applied";
      if (outcome.kind === "failed") this.#fail(`it refused its first state: ${outcome.message}`);
      else if (this.#hasState && this.#port !== undefined) this.#started.resolve(this.#port);
    });
  }

  /** Sends the next change. A thread that does not answer in time is ended, and the outcome is `gone`. */
  apply(change: Change): Promise<ChangeOutcome> {
    const outcome = this.#sending.then(() => this.#sendChange(change));
    this.#sending = outcome;
    return outcome;
  }

  /** Sends a change, a large one in parts: each is sent when the thread has read the one before. */
  async #sendChange(change: Change): Promise<ChangeOutcome> {
    let at = 0;
    for (; change.upsert.length - at > PART_ROUTES; at += PART_ROUTES) {
      const upsert = change.upsert.slice(at, at + PART_ROUTES);
      const outcome = await this.#ask({ type: "stage", seq: ++this.#seq, upsert }, PART_ROUTES);
      if (outcome.kind !== "applied") return outcome;
    }
    const message: ApplyMessage = {
      type: "apply",
      seq: ++this.#seq,
      ...(change.globals === undefined ? {} : { globals: change.globals }),
      upsert: change.upsert.slice(at),
      remove: [...change.remove],
    };
    return this.#ask(message, change.upsert.length + change.remove.length);
  }

  #ask(message: ApplyMessage | StageMessage, routes: number): Promise<ChangeOutcome> {
    if (this.#over) return Promise.resolve({ kind: "gone" });
    const ticksLeft = countTicks(this.#options.silentMs + routes * ROUTE_MS);
    return new Promise((settle) => {
      this.#waiting.push({ seq: message.seq, ticksLeft, settle });
      this.send(message);
    });
  }

  /** Sends a word that is not answered. */
  send(message: ToWorker): void {
    if (!this.#over) this.#worker.postMessage(message);
  }

  /** Has the access log opened again; resolves also where the thread ends instead. */
  reopenAccessLog(): Promise<void> {
    if (!this.isLive) return Promise.resolve();
    return new Promise((resolve) => {
      this.#reopening.push(resolve);
      this.send({ type: "reopen-access-log" });
    });
  }

  /** Lets the thread finish its exchanges, then ends it; resolves with how many were cut. */
  async drain(deadlineMs: number): Promise<number> {
    if (this.#over) return 0;
    this.send({ type: "drain", deadlineMs });
    const timer = setTimeout(() => this.#drained.resolve(0), deadlineMs + DRAIN_GRACE_MS);
    const cut = await this.#drained.promise;
    clearTimeout(timer);
    this.#reason = "it was drained";
    await this.end();
    return cut;
  }

  /** Ends the thread at once. */
  async end(): Promise<void> {
    if (!this.#over) await this.#worker.terminate();
    await this.#gone.promise;
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case "listening":
        this.#port = message.port;
        if (this.#hasState) this.#started.resolve(message.port);
        return;
      case "listen-failed":
        this.#fail(`it cannot listen: ${message.message}`);
        return;
      case "applied":
        this.#settle(message.seq, { kind: "applied" });
        return;
      case "apply-failed":
        this.#settle(message.seq, { kind: "failed", message: message.message });
        return;
      case "route-drained":
        if (message.cut > 0) {
          this.#options.log.warn("streams of a removed route were cut at the deadline", {
            route: message.key,
            cut: message.cut,
          });
        }
        return;
      case "drained":
        this.#drained.resolve(message.cut);
        return;
      case "reopened":
        this.#reopening.shift()?.();
        return;
      case "log":
        this.#options.log[message.level](message.msg, { worker: this.index, ...message.fields });
        return;
      default:
        message satisfies never;
    }
  }

  #settle(seq: number, outcome: ChangeOutcome): void {
    const at = this.#waiting.findIndex((waiting) => waiting.seq === seq);
    const [waiting] = at < 0 ? [] : this.#waiting.splice(at, 1);
    waiting?.settle(outcome);
  }

  #tick(): void {
    if (!this.isLive) {
      if (--this.#startTicksLeft <= 0) this.#fail("it did not listen in time");
      return;
    }
    const oldest = this.#waiting[0];
    if (oldest !== undefined && --oldest.ticksLeft <= 0) {
      this.#fail("it did not take up a change in time");
      return;
    }
    const heartbeat = this.metrics.readCounter("heartbeatMs");
    this.#stuckTicks = heartbeat === this.#heartbeat ? this.#stuckTicks + 1 : 0;
    this.#heartbeat = heartbeat;
    if (this.#stuckTicks >= countTicks(this.#options.stuckMs)) this.#fail("it shows no life");
  }

  /** Ends a thread that is of no use any more; the first reason counts. */
  #fail(reason: string): void {
    if (this.#over || this.#reason !== "") return;
    this.#reason = reason;
    this.#started.reject(new Error(reason));
    void this.#worker.terminate();
  }

  #finish(code: number): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#ticker);
    const reason = this.#reason === "" ? `it ended with code ${code}` : this.#reason;
    this.#started.reject(new Error(reason));
    this.#drained.resolve(0);
    for (const waiting of this.#waiting.splice(0)) waiting.settle({ kind: "gone" });
    for (const resolve of this.#reopening.splice(0)) resolve();
    this.#options.onGone(this, reason);
    this.#gone.resolve();
  }
}

function countTicks(ms: number): number {
  return Math.max(1, Math.ceil(ms / TICK_MS));
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function ignoreRejection(): void {
  // The rejection is for those who wait for the start; a replacement's failure is told by `onGone`.
}
