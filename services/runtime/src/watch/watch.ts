// `platform run --watch`: a new process takes over when a file changes; the old one stays if the new one fails.
import cluster, { type Worker } from "node:cluster";
import {
  isSecretsAnswer,
  isServiceMessage,
  type ListenerReport,
  type SecretsAnswer,
  type SecretsMessage,
} from "@platform/kernel/lifecycle";
import type { Development, ServiceRules } from "@platform/service/host";
import { FileWatch } from "./file-watch.ts";
import { findLinger, GatewayLink, type GatewayPort } from "./gateway-link.ts";
import { HeldSocket } from "./held-socket.ts";
import {
  isDatabaseMessage,
  isFailedMessage,
  isFileMessage,
  isRefusedMessage,
  isRulesMessage,
  isSchedulesMessage,
  isSpansMessage,
  type GatewayVersion,
  type RunCommand,
  type SchedulesMessage,
  type SpansMessage,
  type WorkerCommand,
} from "./messages.ts";
import { TypeCheck } from "./type-check.ts";

/** Editors write a file in several steps. */
const DEBOUNCE_MS = 40;
const START_MS = 60_000;
const STOP_MS = 35_000;
/** For one that has not served: its code may be in a loop, and sees no signal. */
const LOADING_STOP_MS = 1_000;
/** A service that exits earlier after its start is replaced once; then it would exit again. */
const RESTART_AFTER_MS = 5_000;
/** Waits before further attempts: the first one, doubled up to the last one. */
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;

/** Options of {@link watchService}. */
export interface WatchOptions {
  /** Absolute path of the service file. */
  readonly file: string;
  readonly write: (line: string) => void;
  /** Address to listen on if neither the service nor the environment names one; default: all interfaces. */
  readonly hostByDefault?: string;
  /**
   * True if nobody watches: a service that does not start, or exits soon after its start for the second time, is started again
   * after 1 s, 2 s, up to 30 s. Otherwise it waits for a change, so that the error stays on the screen.
   */
  readonly retries?: boolean;
  /**
   * Time after a change, in ms, for which a process waits for the next one; without a change there is none, and the first
   * change takes longer. Default: there is always one.
   */
  readonly spareMs?: number;
  /** Details of errors in answers; default: none. */
  readonly development?: Development;
  /** Called after each start of a process, with the error of one that failed. */
  readonly onOutcome?: (failure: string | undefined) => void;
  /** Called when the schedules of the running process change. */
  readonly onSchedules?: (message: SchedulesMessage) => void;
  /** Called with spans of the running process. */
  readonly onSpans?: (message: SpansMessage) => void;
  /** Called when the running process uses replaced secrets. */
  readonly onSecretsFollowed?: (answer: SecretsAnswer) => void;
  /** The gateway that sends requests to the service; undefined without one. */
  readonly gateway?: GatewayPort;
  /** Receives the controls of the service. */
  readonly onControls?: (controls: WatchControls) => void;
}

/** Controls of a watched service. */
interface WatchControls {
  /** Stops the service like SIGTERM. */
  readonly stop: () => void;
  /** Passes a command to the running process, if there is one. */
  readonly send: (command: RunCommand) => void;
  /** Sends replaced secrets to the running process; false if there is none. */
  readonly sendSecrets: (message: SecretsMessage) => boolean;
}

/** Runs a service until a signal; resolves to the exit code. */
export async function watchService(options: WatchOptions): Promise<number> {
  // Workers share the listening socket, which this process keeps open: no connection is refused during a change.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({
    exec: new URL("worker.ts", import.meta.url).pathname,
    args: [
      options.file,
      options.hostByDefault ?? "",
      JSON.stringify(options.development ?? { hasDetails: false }),
    ],
    silent: false,
  });
  const watch = new Watch(options);
  watch.begin();
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, resolve);
    options.onControls?.({
      stop: () => resolve("SIGTERM"),
      send: (command) => watch.send(command),
      sendSecrets: (message) => watch.sendSecrets(message),
    });
  });
  await watch.stop(signal);
  return 0;
}

/** A process that loads the service. */
interface Loading {
  readonly worker: Worker;
  /** Kills it if it takes too long. */
  readonly timer: NodeJS.Timeout;
  readonly beganAtMs: number;
}

class Watch {
  readonly #options: WatchOptions;
  readonly #files = new FileWatch(() => this.#onChange());
  readonly #socket = new HeldSocket();
  #current: Worker | undefined;
  #next: Loading | undefined;
  /** Waits for the next change. */
  #spare: Worker | undefined;
  /** The last report of each process. */
  readonly #schedules = new WeakMap<Worker, SchedulesMessage>();
  readonly #wasReady = new WeakSet<Worker>();
  /** Errors that have kept processes from starting. */
  readonly #reasons = new WeakMap<Worker, string>();
  readonly #gateway: GatewayLink;
  readonly #versions = new WeakMap<Worker, GatewayVersion>();
  /** The gateway is about to send requests to the process that has loaded: it is not replaced meanwhile. */
  #isPublishing = false;
  #beginsLater = false;
  #port = 0;
  /** Monotonic ms at which the running process became ready. */
  #readyAtMs = 0;
  #hasDatabase = false;
  /** Until the waiting process ends; undefined if no file has changed recently. */
  #spareTimer: NodeJS.Timeout | undefined;
  /** Until the next start: after a change, or after a failure. */
  #timer: NodeJS.Timeout | undefined;
  /** Failed attempts since the last change or the last start that lasted. */
  #failures = 0;
  /** True if a process that exited soon after its start has been replaced since the last change. */
  #isReplaced = false;
  #isStopping = false;
  readonly #types: TypeCheck;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#types = new TypeCheck(options.file, options.write);
    this.#gateway = new GatewayLink(options.gateway);
    // The file may not compile at first.
    this.#files.add("file", options.file);
  }

  /** Loads the service in a waiting process, which takes over when it is ready. One that is still loading is replaced. */
  begin(): void {
    clearTimeout(this.#timer);
    if (this.#isPublishing) {
      this.#beginsLater = true;
      return;
    }
    const superseded = this.#endLoading();
    // It may have accepted connections already: it drains.
    if (superseded !== undefined) {
      this.#discardPlace(superseded);
      void stopWorker(superseded, "SIGTERM");
    }
    const worker = this.#spare ?? this.#fork();
    this.#spare = undefined;
    const timer = setTimeout(() => worker.kill("SIGKILL"), START_MS);
    this.#next = { worker, timer, beganAtMs: performance.now() };
    command(worker, "load");
  }

  /** The process that was loading; undefined if there is none. */
  #endLoading(): Worker | undefined {
    const { worker, timer } = this.#next ?? {};
    clearTimeout(timer);
    this.#next = undefined;
    return worker;
  }

  #fork(): Worker {
    const worker = cluster.fork();
    worker.on("message", (message: unknown) => this.#onMessage(worker, message));
    worker.on("exit", (code, signal) => this.#onExit(worker, code, signal));
    // The channel of a process that has just exited is closed; its exit is handled.
    worker.on("error", () => {});
    return worker;
  }

  #onMessage(worker: Worker, message: unknown): void {
    if (isSchedulesMessage(message)) this.#noteSchedules(worker, message);
    else if (isSpansMessage(message)) this.#options.onSpans?.(message);
    else if (isSecretsAnswer(message)) this.#options.onSecretsFollowed?.(message);
    else if (isFileMessage(message)) this.#files.add(message.type, message.path);
    else if (isDatabaseMessage(message)) this.#hasDatabase = true;
    else if (worker !== this.#next?.worker) return;
    else if (isRulesMessage(message)) void this.#choosePlace(worker, message.rules);
    else if (isFailedMessage(message)) {
      this.#reasons.set(worker, message.reason);
      worker.process.kill("SIGKILL");
    } else if (isRefusedMessage(message)) this.#keep(this.#endLoading(), message.reason);
    else if (isServiceMessage(message) && message.type === "ready") {
      void this.#publish(worker, message.listeners);
    }
  }

  async #choosePlace(worker: Worker, rules: ServiceRules | null): Promise<void> {
    const { version, ...message } = await this.#gateway.choose(rules);
    if (version !== undefined) this.#versions.set(worker, version);
    if (worker.isConnected()) worker.send(message);
  }

  /** A process that has not taken over ends: requests are not sent to its port. */
  #discardPlace(worker: Worker): void {
    const version = this.#versions.get(worker);
    if (version !== undefined && !this.#gateway.isPublished(version)) {
      this.#socket.discard(version.port);
    }
  }

  /** Lets the process take over, when the gateway sends it the requests by its rules. */
  async #publish(worker: Worker, listeners: readonly ListenerReport[]): Promise<void> {
    const version = this.#versions.get(worker);
    if (!this.#gateway.isPublished(version)) {
      this.#isPublishing = true;
      const before = this.#gateway.published;
      const refused = await this.#gateway.publish(version);
      this.#isPublishing = false;
      const ended = refused === undefined ? before : version;
      if (ended !== undefined) this.#socket.discard(ended.port);
      if (this.#isStopping) return;
      const isLoaded = this.#next?.worker === worker;
      if (refused !== undefined && isLoaded) {
        this.#endLoading();
        const reason = `the gateway rules are refused: ${refused}`;
        this.#say(reason);
        void stopWorker(worker, "SIGTERM");
        this.#prepareSpare();
        this.#sayNotStarted(this.#current === undefined ? this.#planRetry() : "", reason);
      } else if (isLoaded) this.#swap(listeners);
      else await this.#restorePublished();
      if (this.#beginsLater) {
        this.#beginsLater = false;
        this.begin();
      }
    } else this.#swap(listeners);
  }

  /** The process has exited while the gateway began to send it requests: those are the running one's again. */
  async #restorePublished(): Promise<void> {
    const version = this.#current && this.#versions.get(this.#current);
    const refused = await this.#gateway.publish(version);
    if (refused !== undefined) this.#say(`the gateway rules are refused: ${refused}`);
  }

  /** The process waits for the next change: nothing of the invalid file has run in it. */
  #keep(worker: Worker | undefined, reason: string): void {
    this.#spare = worker;
    if (this.#current === undefined) this.#socket.release();
    this.#sayNotStarted("waiting for a change", reason);
  }

  /** Starts the process for the next change, when nothing else is starting. */
  #prepareSpare(): void {
    if (this.#isStopping || this.#spare !== undefined || this.#next !== undefined) return;
    if (this.#options.spareMs !== undefined && this.#spareTimer === undefined) return;
    this.#spare = this.#fork();
    if (this.#hasDatabase) command(this.#spare, "prepare database");
  }

  /** Keeps a process waiting for the next change, for the time of `spareMs`. */
  #extendSpare(): void {
    const { spareMs } = this.#options;
    if (spareMs === undefined) return;
    clearTimeout(this.#spareTimer);
    this.#spareTimer = setTimeout(() => {
      this.#spareTimer = undefined;
      this.#spare?.kill("SIGKILL");
    }, spareMs).unref();
  }

  /** Sends a command to the running process. */
  send(command: RunCommand): void {
    if (this.#current?.isConnected() === true) this.#current.send(command);
  }

  /**
   * Sends replaced secrets to the running process; false if there is none. Processes that have not taken over begin again,
   * with the environment of now.
   */
  sendSecrets(message: SecretsMessage): boolean {
    this.#spare?.kill("SIGKILL");
    this.#spare = undefined;
    if (this.#next !== undefined) this.begin();
    if (this.#current?.isConnected() !== true) return false;
    this.#current.send(message);
    return true;
  }

  /** Stops all processes, which drain. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true;
    this.#socket.end();
    this.#types.stop();
    clearTimeout(this.#timer);
    clearTimeout(this.#spareTimer);
    this.#files.close();
    // Its timer would keep this process until the time for a start is over.
    this.#endLoading();
    const workers = Object.values(cluster.workers ?? {}).filter((one) => one !== undefined);
    await Promise.all(
      // Only processes that were ready serve requests to be finished.
      workers.map((worker) =>
        stopWorker(worker, signal, this.#wasReady.has(worker) ? STOP_MS : LOADING_STOP_MS),
      ),
    );
  }

  #swap(listeners: readonly ListenerReport[]): void {
    const { worker, beganAtMs } = this.#next!;
    const durationMs = performance.now() - beganAtMs;
    this.#endLoading();
    this.#prepareSpare();
    const [listener] = listeners;
    const port = listener?.port ?? 0;
    const where = listener?.host === "::" ? " on all interfaces" : "";
    const old = this.#current;
    if (old !== undefined && port !== this.#port) {
      this.#say(`the port changed from ${this.#port} to ${port}: restart the command to apply it`);
      void stopWorker(worker, "SIGTERM");
      return;
    }
    this.#current = worker;
    this.#wasReady.add(worker);
    this.#port = port;
    this.#readyAtMs = performance.now();
    this.#say(
      `${old === undefined ? "running" : "reloaded"} on http://localhost:${port}${where} in ${Math.round(durationMs)} ms`,
    );
    if (old !== undefined) this.#retire(old, worker);
    this.#types.start();
    this.#reportSchedules();
    this.#options.onOutcome?.(undefined);
  }

  /** Stops the process that another one has replaced. */
  #retire(old: Worker, next: Worker): void {
    const version = this.#versions.get(old);
    if (version === this.#versions.get(next)) void stopWorker(old, "SIGTERM");
    // Requests that wait in the gateway were admitted by the old rules.
    else setTimeout(() => void stopWorker(old, "SIGTERM"), findLinger(version)).unref();
  }

  #noteSchedules(worker: Worker, message: SchedulesMessage): void {
    this.#schedules.set(worker, message);
    if (worker === this.#current) this.#reportSchedules();
  }

  #reportSchedules(): void {
    const none: SchedulesMessage = { type: "schedules", schedules: [] };
    const known = this.#current && this.#schedules.get(this.#current);
    this.#options.onSchedules?.(known ?? none);
  }

  #onExit(worker: Worker, code: number, signal: string | null): void {
    if (this.#isStopping) return;
    if (worker === this.#spare) this.#spare = undefined;
    else if (worker === this.#next?.worker) {
      this.#discardPlace(worker);
      this.#endLoading();
      this.#prepareSpare();
      if (this.#current === undefined) {
        this.#socket.release();
        // Its port may be that of another program.
        this.#gateway.forget();
      }
      const reason = this.#reasons.get(worker) ?? `it exited (${signal ?? `code ${code}`})`;
      this.#sayNotStarted(this.#current === undefined ? this.#planRetry() : "", reason);
    } else if (worker === this.#current) {
      this.#current = undefined;
      this.#reportSchedules();
      this.#say(`the service exited (${signal ?? `code ${code}`}): ${this.#continue()}`);
    }
  }

  /** Continues after the exit of the running process; returns how, in words. Connections wait for a process that starts. */
  #continue(): string {
    if (this.#next !== undefined) {
      this.#socket.wait();
      return "the next version is starting";
    }
    const isEarly = performance.now() - this.#readyAtMs < RESTART_AFTER_MS;
    if (isEarly && this.#isReplaced) {
      this.#socket.release();
      return this.#planRetry();
    }
    this.#isReplaced = isEarly;
    if (!isEarly) this.#failures = 0;
    this.#socket.wait();
    this.begin();
    return "starting it again";
  }

  /** Plans the next attempt after one that failed; returns when it is, in words. */
  #planRetry(): string {
    if (this.#options.retries !== true) return "waiting for a change";
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** this.#failures);
    this.#failures += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.begin(), waitMs);
    return `starting it again in ${waitMs / 1_000} s`;
  }

  /** `next`: what happens if no version runs. */
  #sayNotStarted(next: string, reason: string): void {
    const isRunning = this.#current !== undefined;
    this.#say(`not started: ${isRunning ? "the running version stays" : next}`);
    this.#options.onOutcome?.(reason);
  }

  #onChange(): void {
    this.#failures = 0;
    this.#isReplaced = false;
    this.#extendSpare();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.begin(), DEBOUNCE_MS);
  }

  #say(text: string): void {
    this.#options.write(`platform: ${text}\n`);
  }
}

function command(worker: Worker, text: WorkerCommand): void {
  worker.send(text);
}

async function stopWorker(
  worker: Worker,
  signal: NodeJS.Signals,
  timeoutMs = STOP_MS,
): Promise<void> {
  if (worker.isDead()) return;
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  worker.process.kill(signal);
  const timer = setTimeout(() => worker.process.kill("SIGKILL"), timeoutMs);
  await exited;
  clearTimeout(timer);
}
