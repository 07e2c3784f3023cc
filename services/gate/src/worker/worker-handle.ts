// The control plane's handle of one worker thread: messages, acknowledgements and liveness.
import { Worker } from "node:worker_threads";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { FinishedSpan } from "@platform/kernel/trace";
import {
  type AccessChange,
  type ApplyMessage,
  type FromWorker,
  type GlobalSpec,
  type GuestChange,
  type AiBudget,
  type AiFigures,
  type GuestFigures,
  MetricBlock,
  type RefreshOutcome,
  type RouteKey,
  type RouteSpec,
  type SimilarQuestion,
  type StageMessage,
  type ToWorker,
  type WorkerInit,
  allocateMetricBlock,
} from "../shared-state/index.ts";

/** A change without a sequence number. */
export interface Change {
  globals?: GlobalSpec;
  access?: AccessChange;
  guests?: GuestChange;
  budgets?: readonly AiBudget[];
  upsert: readonly RouteSpec[];
  remove: readonly RouteKey[];
}

/** Questions to models whose answers are stored. Calls never reject. */
export interface QuestionSource {
  /** The stored question of a scope that is most alike. */
  find(scope: string, text: string, threshold: number): Promise<SimilarQuestion | undefined>;
  /** Adds a question whose answer is stored under `digest`. */
  add(scope: string, text: string, digest: string, ttlMs: number): Promise<void>;
}

/** Response of the readiness probe. */
export interface Readiness {
  up: boolean;
  checks: Record<string, string>;
}

/** Outcome of a change on one worker; `gone`: the worker ended before it replied. */
export type ChangeOutcome =
  | { kind: "applied" }
  | { kind: "failed"; message: string }
  | { kind: "gone" };

/** Options of {@link WorkerHandle}. */
export interface WorkerHandleOptions {
  entry: URL;
  init: Omit<WorkerInit, "metrics">;
  log: Logger;
  /** Timeout for the reply to a change, and for the heartbeat, in ms. */
  silentMs: number;
  stuckMs: number;
  /** Timeout from the start of the thread until it listens, in ms. */
  startMs: number;
  /** Renews the session of a browser. */
  refreshSession?: ((client: string, sealed: string) => Promise<RefreshOutcome>) | undefined;
  /** Receives the figures of guests, numbered by worker. */
  onAiFigures?: ((figures: readonly AiFigures[]) => void) | undefined;
  questions?: QuestionSource | undefined;
  onGuestFigures?: ((worker: number, figures: readonly GuestFigures[]) => void) | undefined;
  /** Receives the names of handshakes that no certificate fits. */
  onUnknownName?: ((name: string) => void) | undefined;
  /** Called once with the reason when the thread has ended. */
  onGone: (handle: WorkerHandle, reason: string) => void;
}

const TICK_MS = 100;
/** Searches for spans at the same time. */
const SEARCHES_MAX = 32;
/** Additional time per route for a large change. */
const ROUTE_MS = 1;
/** Routes per message: deserializing more at once would delay requests. */
const PART_ROUTES = 64;
/** Grace period after the drain deadline before the thread is terminated. */
const DRAIN_GRACE_MS = 500;

type SimilarRequest = Extract<FromWorker, { type: "find-similar" }>;
type RefreshRequest = Extract<FromWorker, { type: "refresh-session" }>;

interface Waiting {
  seq: number;
  ticksLeft: number;
  settle: (outcome: ChangeOutcome) => void;
}

/** A worker thread and its protocol. */
export class WorkerHandle {
  readonly index: number;
  readonly metrics: MetricBlock;
  readonly #options: WorkerHandleOptions;
  readonly #worker: Worker;
  readonly #started = Promise.withResolvers<number>();
  readonly #drained = Promise.withResolvers<number>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #ticker: RepeatingTimer;
  #waiting: Waiting[] = [];
  #reopening: (() => void)[] = [];
  /** Searches for spans by their number. */
  readonly #searches = new Map<number, (spans: readonly FinishedSpan[]) => void>();
  #seq = 0;
  #searchCount = 0;
  /** The previous change: changes are sent one after another. */
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
    // Counts ticks instead of reading a clock, so that suspending the machine does not count as silence.
    this.#ticker = every(
      TICK_MS,
      () => this.#tick(),
      (error) => options.log.error("cannot check a worker", { error: String(error) }),
    );
  }

  /** Resolves with the port when the thread listens; rejects if it cannot. */
  get started(): Promise<number> {
    return this.#started.promise;
  }

  /** Resolves when the thread has ended. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** True while the thread listens with its routes. */
  get isLive(): boolean {
    return this.#port !== undefined && this.#hasState && !this.#over;
  }

  /** Sends the first change, which contains everything, and the readiness; `started` waits for both. */
  begin(change: Change, readiness: Readiness): void {
    this.#startTicksLeft += countTicks(change.upsert.length * ROUTE_MS);
    this.send({ type: "readiness", ...readiness });
    void this.apply(change).then((outcome) => {
      this.#hasState = outcome.kind === "applied";
      if (outcome.kind === "failed") this.#fail(`it refused its initial state: ${outcome.message}`);
      else if (this.#hasState && this.#port !== undefined) this.#started.resolve(this.#port);
    });
  }

  /** Sends the next change. A thread that does not reply in time is terminated, with the outcome `gone`. */
  apply(change: Change): Promise<ChangeOutcome> {
    const outcome = this.#sending.then(() => this.#sendChange(change));
    this.#sending = outcome;
    return outcome;
  }

  /** Sends a change; a large one in parts, each after the previous one is acknowledged. */
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
      ...(change.access === undefined ? {} : { access: change.access }),
      ...(change.guests === undefined ? {} : { guests: change.guests }),
      ...(change.budgets === undefined ? {} : { budgets: change.budgets }),
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

  /** Sends a message without waiting for a reply. */
  send(message: ToWorker): void {
    if (!this.#over) this.#worker.postMessage(message);
  }

  /** The spans of a trace that the thread keeps; none if it ends, or does not reply in time. */
  async findSpans(traceId: string): Promise<readonly FinishedSpan[]> {
    if (this.#over || this.#searches.size >= SEARCHES_MAX) return [];
    const id = ++this.#searchCount;
    const { promise, resolve } = Promise.withResolvers<readonly FinishedSpan[]>();
    this.#searches.set(id, resolve);
    const late = setTimeout(() => resolve([]), this.#options.silentMs);
    this.send({ type: "find-spans", id, traceId });
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      this.#searches.delete(id);
    }
  }

  /** Reopens the access log; also resolves if the thread ends. */
  reopenAccessLog(): Promise<void> {
    if (!this.isLive) return Promise.resolve();
    return new Promise((resolve) => {
      this.#reopening.push(resolve);
      this.send({ type: "reopen-access-log" });
    });
  }

  /** Drains the thread, then terminates it; resolves with the number of exchanges cut by the deadline. */
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

  /** Terminates the thread immediately. */
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
      case "streams-cut":
        this.#options.log.warn("drain deadline cut streams of a removed route", {
          route: message.key,
          cut: message.cut,
        });
        return;
      case "drained":
        this.#drained.resolve(message.cut);
        return;
      case "spans-found":
        this.#searches.get(message.id)?.(message.spans);
        return;
      case "reopened":
        this.#reopening.shift()?.();
        return;
      case "unknown-name":
        this.#options.onUnknownName?.(message.name);
        return;
      case "guest-figures":
        this.#options.onGuestFigures?.(this.index, message.figures);
        return;
      case "ai-figures":
        this.#options.onAiFigures?.(message.figures);
        return;
      case "find-similar":
        void this.#findSimilar(message);
        return;
      case "add-similar": {
        const { scope, text, digest, ttlMs } = message;
        void this.#options.questions?.add(scope, text, digest, ttlMs);
        return;
      }
      case "refresh-session":
        void this.#refreshSession(message);
        return;
      case "log":
        this.#options.log[message.level](message.msg, { worker: this.index, ...message.fields });
        return;
      default:
        message satisfies never;
    }
  }

  async #refreshSession({ id, client, sealed }: RefreshRequest): Promise<void> {
    const unavailable: RefreshOutcome = { kind: "unavailable" };
    const outcome = await (this.#options.refreshSession?.(client, sealed) ?? unavailable);
    this.send({ type: "session-refreshed", id, outcome });
  }

  async #findSimilar({ id, scope, text, threshold }: SimilarRequest): Promise<void> {
    const found = await this.#options.questions?.find(scope, text, threshold);
    this.send({ type: "similar-found", id, found });
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
      this.#fail("it did not apply a change in time");
      return;
    }
    const heartbeat = this.metrics.readCounter("heartbeatMs");
    this.#stuckTicks = heartbeat === this.#heartbeat ? this.#stuckTicks + 1 : 0;
    this.#heartbeat = heartbeat;
    if (this.#stuckTicks >= countTicks(this.#options.stuckMs)) this.#fail("it does not respond");
  }

  /** Terminates the thread; the first reason is kept. */
  #fail(reason: string): void {
    if (this.#over || this.#reason !== "") return;
    this.#reason = reason;
    this.#started.reject(new Error(reason));
    void this.#worker.terminate();
  }

  #finish(code: number): void {
    if (this.#over) return;
    this.#over = true;
    void this.#ticker.stop();
    const reason = this.#reason === "" ? `it ended with code ${code}` : this.#reason;
    this.#started.reject(new Error(reason));
    this.#drained.resolve(0);
    for (const waiting of this.#waiting.splice(0)) waiting.settle({ kind: "gone" });
    for (const resolve of this.#reopening.splice(0)) resolve();
    for (const resolve of this.#searches.values()) resolve([]);
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
  // Only the initial start awaits this promise; failures of replacements are reported through `onGone`.
}
