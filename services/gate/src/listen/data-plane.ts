// The data plane of one worker: applies changes, listens, and drains.
import { lookup } from "node:dns/promises";
import {
  createEngine,
  createServer,
  HexPool,
  type Engine,
  type Server,
  type ServerTls,
} from "@platform/http1";
import type { Revocation } from "@platform/kernel/identity";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { AccessLineFormat } from "../access-log/access-line.ts";
import { AddressSet } from "@platform/kernel/network";
import { type CompiledRoute, RequestState } from "../exchange/exchange.ts";
import { Identity, type VerifierSource } from "../filter/identity/identity.ts";
import type { StepParts } from "../filter/step-parts.ts";
import type { CompileRouteOptions } from "../route/compile-route.ts";
import { PlanCache } from "../route/plan-cache.ts";
import { RouteTable } from "../route/route-table.ts";
import {
  ActiveCounts,
  LinkFigures,
  MetricBlock,
  readMonotonicMs,
  SharedTargetState,
  type ApplyMessage,
  type FindSpansMessage,
  type FromWorker,
  type GlobalSpec,
  type RouteSpec,
  type StageMessage,
  type TicketKeySpec,
  type WorkerInit,
} from "../shared-state/index.ts";
import { Forwarder } from "../request/forwarder.ts";
import { PoolRegistry } from "../upstream/pool-registry.ts";
import { Resolver, RESOLVER_TIMES_DEFAULT } from "../upstream/resolver.ts";
import { RetryBudget } from "../upstream/retry-budget.ts";
import { TargetHealth } from "../upstream/target-health.ts";
import { createConsoleProxy, createControlProxy } from "../request/socket-proxy.ts";
import { ErrorLog } from "../request/error-log.ts";
import type { AccessState } from "../filter/identity/access-state.ts";
import type { ControlLink } from "../filter/control-link.ts";
import { FaultLog } from "./fault-log.ts";
import { GuardFaults } from "./guard-faults.ts";
import type { ActiveConfig } from "../request/active-config.ts";
import { createResilienceOptions, createStepParts } from "./step-parts.ts";
import { RevokedStreams } from "./revoked-streams.ts";
import { describeBounds, ListenerTls } from "./listener-settings.ts";
import { PlainListener } from "./plain-listener.ts";
import { createSpanExporter, createSpanKeeper } from "./span-exporter.ts";
import { UnknownNames } from "./unknown-names.ts";
import { type OpenedLogs, WorkerLogs } from "./worker-logs.ts";
import { waitAtMost } from "./wait-at-most.ts";
import { Probes } from "../request/probes.ts";
import { Recorder } from "../request/recorder.ts";
import { RequestHandler } from "../request/request-handler.ts";
import { RouteRegistry } from "../route/route-registry.ts";

/** Options of {@link DataPlane}. */
export interface DataPlaneOptions {
  init: WorkerInit;
  verifiers: VerifierSource;
  /** API keys, revocations and the global policy; the verifiers reject revoked tokens. */
  access: AccessState;
  control: ControlLink;
  /** Sends a message to the control plane. */
  send: (message: FromWorker) => void;
}

/** Maximum wait of a change for the addresses of new upstreams; then it is applied without them. */
const LOOKUP_WAIT_MS = 1_000;
const TICK_MS = 1_000;

/** The data plane of one worker thread. */
export class DataPlane {
  #ticketKeys: TicketKeySpec | undefined;
  readonly #tls: ListenerTls;
  readonly #options: DataPlaneOptions;
  readonly #engine: Engine;
  readonly #block: MetricBlock;
  readonly #resolver: Resolver;
  readonly #pools: PoolRegistry;
  readonly #recorder: Recorder;
  readonly #faults: FaultLog;
  readonly #forwarder: Forwarder;
  readonly #budget = new RetryBudget();
  readonly #steps: StepParts;
  readonly #logs: WorkerLogs;
  readonly #probes = new Probes();
  readonly #book: RouteRegistry;
  readonly #routeParts: Omit<CompileRouteOptions, "limits">;
  readonly #revoked: RevokedStreams;
  readonly #ticker: RepeatingTimer;
  #config: ActiveConfig | undefined;
  #server: Server<RequestState> | undefined;
  #plain: PlainListener | undefined;
  /** That without TLS for programs on this machine. */
  #local: Server<RequestState> | undefined;
  #changes: Promise<void> = Promise.resolve();
  #stagedRoutes: RouteSpec[] = [];

  readonly #onRequestError = (error: unknown): void => {
    this.#log("error", "internal error while handling a request", { error: describeError(error) });
  };

  constructor(options: DataPlaneOptions) {
    const { init } = options;
    const { shared } = init;
    this.#options = options;
    this.#ticketKeys = init.ticketKeys;
    this.#engine = createEngine();
    this.#tls = createListenerTls(options, this.#engine.now);
    this.#block = new MetricBlock(init.metrics);
    this.#resolver = new Resolver({
      ...RESOLVER_TIMES_DEFAULT,
      lookup: (name) => lookup(name, { all: true }),
      onFailure: (name, error) => {
        this.#log("warn", "DNS lookup of an upstream failed", {
          name,
          error: describeError(error),
        });
      },
    });
    this.#pools = new PoolRegistry(this.#engine, this.#resolver);
    const kept = createSpanKeeper(shared.workers, this.#engine.now);
    this.#recorder = new Recorder(this.#block, new AccessLineFormat(), kept);
    this.#faults = new FaultLog(this.#block, this.#engine, (msg, fields) =>
      this.#log("error", msg, fields),
    );
    const active = new ActiveCounts(shared);
    const health = new TargetHealth(
      new SharedTargetState(shared.targets),
      () => readMonotonicMs() - shared.startedMs,
    );
    this.#forwarder = new Forwarder({
      workerIndex: init.workerIndex,
      active,
      figures: new LinkFigures(shared.figures),
      health,
      budget: this.#budget,
      block: this.#block,
      onDescriptorShortage: (code) => this.#faults.noteShortage(code, "an upstream's connection"),
      onError: this.#onRequestError,
    });
    this.#book = new RouteRegistry({
      readNowMs: this.#engine.now,
      onCut: (key, cut) => options.send({ type: "streams-cut", key, cut }),
      cutExchanges: (route) => this.#cutExchanges(route),
    });
    const guardFaults = new GuardFaults((msg, fields) => this.#log("warn", msg, fields));
    this.#steps = createStepParts({
      ...options,
      onGuardError: (msg, url, error) => guardFaults.note(msg, url, error),
      block: this.#block,
      readNowMs: this.#engine.now,
      log: this.#log.bind(this),
    });
    this.#logs = new WorkerLogs({
      recorder: this.#recorder,
      recordings: this.#steps.recordings,
      block: this.#block,
      onError: (msg, error) => this.#log("error", msg, { error: error.message }),
    });
    this.#routeParts = {
      pools: this.#pools,
      plans: new PlanCache(),
      steps: this.#steps,
      resilience: createResilienceOptions(shared, this.#block, this.#steps.readNowMs),
      routeState: this.#steps.routeState,
      active,
      health,
      random: Math.random,
    };
    this.#revoked = new RevokedStreams({
      access: options.access,
      listActive: () => this.#forwarder.listActive(),
      onEnded: (ended) => this.#log("info", "streams of ended sessions closed", { ended }),
    });
    this.#ticker = every(
      TICK_MS,
      () => this.#tick(),
      (error) => this.#log("error", "a periodic task failed", { error: describeError(error) }),
    );
    this.#tick();
  }

  /** Stores a part of the next change, which is too large for one message. */
  stage(message: StageMessage): void {
    for (const spec of message.upsert) this.#stagedRoutes.push(spec);
    this.#options.send({ type: "applied", seq: message.seq });
  }

  /** Applies a change after the previous ones and reports the outcome. */
  apply(message: ApplyMessage): void {
    const staged = this.#stagedRoutes;
    this.#stagedRoutes = [];
    const upsert = staged.length === 0 ? message.upsert : [...staged, ...message.upsert];
    this.#changes = this.#changes.then(async () => {
      try {
        await this.#applyOne({ ...message, upsert });
        this.#options.send({ type: "applied", seq: message.seq });
      } catch (error) {
        const text = describeError(error);
        this.#options.send({ type: "apply-failed", seq: message.seq, message: text });
      }
    });
  }

  /** Reports the spans of a trace that this worker keeps. */
  findSpans({ id, traceId }: FindSpansMessage): void {
    this.#options.send({ type: "spans-found", id, spans: this.#recorder.kept.find(traceId) });
  }

  /** Sets the response of `/readyz`. */
  setReadiness(up: boolean, checks: Record<string, string>): void {
    this.#probes.setReadiness(up, checks);
  }

  /** Encrypts the session tickets of further handshakes with these keys. */
  setTicketKeys(ticketKeys: TicketKeySpec): void {
    this.#ticketKeys = ticketKeys;
    const tls = this.#config?.globals.tls;
    if (tls !== undefined) this.#server?.setTls(this.#tls.describe(tls, ticketKeys));
  }

  /** Adds revocations; see {@link RevokedStreams}. */
  revoke(entries: readonly Revocation[], policyVersion: number | undefined): void {
    this.#revoked.add(entries, policyVersion);
  }

  /** Reopens the access log and the recording. */
  async reopenAccessLog(): Promise<void> {
    await this.#logs.reopen();
    this.#options.send({ type: "reopened" });
  }

  /**
   * Stops accepting, finishes active requests until the deadline and streams until `streamDrainMs`, flushes the access
   * log, then reports `drained`.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#probes.setDraining();
    await this.#changes;
    let cut = 0;
    const servers = this.#servers;
    if (servers.length > 0) {
      const last = setTimeout(
        () => {
          for (const { counts } of servers) cut += counts.active + counts.tunnels;
        },
        Math.max(0, deadlineMs - 1),
      );
      await Promise.all([
        ...servers.map((one) => one.drain(deadlineMs, this.#config?.globals.limits.streamDrainMs)),
        this.#plain?.drain(deadlineMs),
      ]);
      clearTimeout(last);
    }
    await this.#ticker.stop();
    this.#tick();
    this.#pools.close();
    this.#steps.limiter.close();
    this.#steps.guests.registry.report();
    this.#steps.ai.close();
    this.#resolver.close();
    this.#config?.control.close(0);
    await Promise.all([
      this.#logs.close(),
      this.#recorder.spans?.shutdown(Math.min(deadlineMs, 2_000)),
    ]);
    this.#engine.close();
    this.#options.send({ type: "drained", cut });
  }

  // Everything that can fail happens before any part of the change takes effect.
  async #applyOne(message: ApplyMessage): Promise<void> {
    const before = this.#config;
    const globals = message.globals ?? before?.globals;
    if (globals === undefined) throw new Error("the first change has no globals");
    const isChanged = message.globals !== undefined;
    const trusted = isChanged ? new AddressSet(globals.trustedProxies) : before!.trusted;
    const identity = isChanged
      ? new Identity(globals, this.#options.verifiers)
      : this.#steps.identity.current;
    const staged = await this.#book.stage(message.upsert, message.remove, {
      ...this.#routeParts,
      limits: globals.limits,
    });
    let logs: OpenedLogs | undefined;
    let table: RouteTable<CompiledRoute>;
    try {
      table = await RouteTable.build(staged.routes, globals.internalRoutes);
      if (isChanged) logs = this.#logs.open(globals, before?.globals);
      if (isChanged && this.#server !== undefined && globals.tls !== undefined) {
        this.#server.setTls(this.#tls.describe(globals.tls, this.#ticketKeys));
      }
      await waitAtMost(staged.ready, LOOKUP_WAIT_MS);
    } catch (error) {
      staged.discard();
      throw error;
    }
    const control =
      before !== undefined && isSameControl(before.globals, globals)
        ? before.control
        : createControlProxy(this.#engine, globals.control);
    if (control !== before?.control) before?.control.close(globals.limits.routeDrainMs);
    if (isChanged) this.#takeOver(globals, before?.globals);
    if (logs !== undefined) this.#logs.takeOver(logs);
    if (message.access !== undefined) this.#revoked.change(message.access);
    if (message.budgets !== undefined) this.#steps.ai.accounting.setBudgets(message.budgets);
    if (message.guests !== undefined) this.#steps.guests.registry.change(message.guests);
    this.#steps.identity.current = identity;
    if (before === undefined) {
      const { identity: current } = this.#steps;
      // The console is that of the start.
      const console =
        globals.console === undefined
          ? undefined
          : createConsoleProxy(this.#engine, globals.console);
      this.#config = { globals, table, trusted, identity: current, control, console };
      await this.#listen(this.#config);
    } else {
      Object.assign(before, { globals, table, trusted, control });
    }
    await staged.commit();
  }

  #takeOver(globals: GlobalSpec, before: GlobalSpec | undefined): void {
    this.#probes.setVersion(globals.serviceVersion);
    this.#steps.limiter.setRedis(globals.limitsRedisUrl);
    this.#steps.ai.accounting.setRedis(globals.limitsRedisUrl);
    this.#steps.guests.registry.configure(globals.guests);
    this.#steps.ai.setPrices(globals.aiPrices ?? {});
    this.#steps.ai.semantic.hasVectors = globals.embedding !== undefined;
    this.#engine.outgoing.bytesMax = globals.limits.unsentBytesMax;
    this.#engine.upstreamsMax = globals.limits.upstreamsMax;
    for (const server of this.#servers) server.setBounds(describeBounds(globals.limits));
    this.#plain?.setBounds(describeBounds(globals.limits));
    if (globals.otlpEndpoint === before?.otlpEndpoint) return;
    void this.#recorder.spans?.shutdown(2_000);
    this.#recorder.spans = createSpanExporter(globals, this.#block);
  }

  async #listen(config: ActiveConfig): Promise<void> {
    const { tls } = config.globals;
    const handler = new RequestHandler({
      config,
      probes: this.#probes,
      forwarder: this.#forwarder,
      recorder: this.#recorder,
      block: this.#block,
      hexPool: new HexPool(),
      onRouteIdle: (route) => this.#book.settle(route),
      errorLog: new ErrorLog(this.#log.bind(this), this.#engine.now),
      onError: this.#onRequestError,
    });
    const create = (secured: ServerTls | undefined): Server<RequestState> =>
      this.#createServer(config, handler, secured);
    const server = create(tls && this.#tls.describe(tls, this.#ticketKeys));
    this.#server = server;
    this.#steps.cache.detached.handle = server.handleDetached.bind(server);
    const { listen, localListen } = this.#options.init;
    const { host, port, reusePort } = listen;
    try {
      await server.listen({ host, port, reusePort });
      await this.#listenPlain(config);
      if (localListen !== undefined) {
        this.#local = create(undefined);
        await this.#local.listen(localListen);
      }
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      this.#options.send({ type: "listen-failed", code, message });
      throw error;
    }
    const address = server.address();
    const realPort = address !== null && "port" in address ? address.port : port;
    this.#options.send({ type: "listening", port: realPort });
  }

  #createServer(
    config: ActiveConfig,
    handler: RequestHandler,
    tls: ServerTls | undefined,
  ): Server<RequestState> {
    const acceptedAt = this.#block.findCounter("connectionsAccepted");
    const { values } = this.#block;
    return createServer<RequestState>({
      engine: this.#engine,
      handler: (exchange) => handler.handle(exchange),
      createUserData: () => {
        const state = new RequestState();
        state.isShed = this.#countConnections() >= config.globals.limits.connectionsMax;
        values[acceptedAt] = values[acceptedAt]! + 1;
        return state;
      },
      ...describeBounds(config.globals.limits),
      isProxyAddress: (address) => config.trusted.has(address),
      ...(tls === undefined ? {} : { tls }),
      onFault: (fault) => this.#faults.note(fault),
      onHandlerError: this.#onRequestError,
    });
  }

  get #servers(): Server<RequestState>[] {
    return [this.#server, this.#local].filter((server) => server !== undefined);
  }

  #countConnections(): number {
    return (this.#server?.counts.connections ?? 0) + (this.#local?.counts.connections ?? 0);
  }

  async #listenPlain(config: ActiveConfig): Promise<void> {
    const { plainListen, listen } = this.#options.init;
    if (plainListen === undefined) return;
    this.#plain = new PlainListener({
      engine: this.#engine,
      tlsPort: listen.port,
      readTokens: () => (this.#config ?? config).globals.challengeTokens ?? {},
      bounds: describeBounds(config.globals.limits),
      onError: this.#onRequestError,
    });
    await this.#plain.listen(plainListen);
  }

  #cutExchanges(route: CompiledRoute): number {
    let cut = 0;
    for (const state of this.#forwarder.listActive()) {
      if (state.route !== route) continue;
      cut++;
      if (state.exchange?.endStream() !== true) state.exchange?.destroy();
    }
    return cut;
  }

  #tick(): void {
    const block = this.#block;
    block.setCounter("heartbeatMs", readMonotonicMs());
    block.setCounter("connectionsActive", this.#countConnections());
    block.setCounter("unsentBytes", this.#engine.outgoing.heldBytes);
    this.#logs.count();
    this.#budget.tick();
    this.#book.tick();
    this.#revoked.tick();
  }

  #log(
    level: "info" | "warn" | "error",
    msg: string,
    fields: Record<string, string | number | boolean>,
  ): void {
    this.#options.send({ type: "log", level, msg, fields });
  }
}

function createListenerTls({ send }: DataPlaneOptions, readNowMs: () => number): ListenerTls {
  const unknown = new UnknownNames((name) => send({ type: "unknown-name", name }), readNowMs);
  return new ListenerTls((name) => unknown.note(name));
}

function isSameControl(one: GlobalSpec, other: GlobalSpec): boolean {
  return (
    one.control.socketPath === other.control.socketPath &&
    one.control.secret === other.control.secret
  );
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
