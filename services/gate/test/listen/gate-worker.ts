// Starts a real worker thread with real upstreams, as the control plane would.
import { once } from "node:events";
import { rmSync } from "node:fs";
import {
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  ActiveCounts,
  type AiBudget,
  allocateMetricBlock,
  allocateSharedBuffers,
  BODY_BYTES_MAX_DEFAULT,
  CUT_FIELDS_DEFAULT,
  GUEST_LIMITS_DEFAULT,
  LIMITS_DEFAULT,
  makeRouteKey,
  makeTargetKey,
  MetricBlock,
  ROUTE_TIMEOUTS_DEFAULT,
  type FromWorker,
  type GlobalSpec,
  type GuestChange,
  type GuestFigures,
  type RouteKey,
  type RouteSpec,
  type SharedBuffers,
  type TargetSpec,
  type ToWorker,
  type WorkerInit,
} from "../../src/shared-state/index.ts";

/** A route as a test writes it; the rest is filled in. */
export type TestRoute = Partial<Omit<RouteSpec, "targets" | "key">> & {
  targets: (string | Pick<TargetSpec, "url" | "weight" | "model">)[];
};

const ENTRY = new URL("../../src/listen/worker.ts", import.meta.url);

/** Globals of a gateway without tokens. */
export const GLOBALS: GlobalSpec = {
  serviceVersion: "1.0.0",
  hasIndex: false,
  hasConsole: false,
  noRouteStatus: 502,
  trustedProxies: [],
  internalRoutes: [
    { path: "/healthz", match: "exact", access: "probe" },
    { path: "/readyz", match: "exact", access: "probe" },
    { path: "/api/v1/routes", match: "exact", access: "admin" },
    { path: "/ui/", match: "below", access: "public" },
  ],
  control: { socketPath: "/nonexistent/control.sock", secret: "control-secret" },
  limits: LIMITS_DEFAULT,
  guests: GUEST_LIMITS_DEFAULT,
};

/** Makes specs with stable slots, as the planner of the control plane does. */
export class TestPlanner {
  readonly #slots = new Map<string, number>();
  #routes = 0;

  plan(route: TestRoute): RouteSpec {
    const prefix = route.prefix ?? "/";
    const id = ++this.#routes;
    return {
      key: makeRouteKey(route.host, prefix),
      prefix,
      slot: id,
      metricsId: id,
      balancer: "round_robin",
      stripPrefix: false,
      hostHeader: "client",
      rawPath: false,
      bodyBytesMax: BODY_BYTES_MAX_DEFAULT,
      timeouts: ROUTE_TIMEOUTS_DEFAULT,
      accessLog: false,
      auth: { type: "inherit" },
      cutFields: CUT_FIELDS_DEFAULT,
      steps: {},
      ...route,
      targets: route.targets.map((target) => {
        const given = typeof target === "string" ? { url: target, weight: 1 } : target;
        const { url } = given;
        const key = makeTargetKey(url, route.upstreamTls);
        const slot = this.#slots.get(key) ?? this.#slots.size;
        this.#slots.set(key, slot);
        const linkKey = `link ${prefix} ${url}`;
        const link = this.#slots.get(linkKey) ?? this.#slots.size;
        this.#slots.set(linkKey, link);
        return { ...given, slot, link };
      }),
    };
  }

  linksOf(prefix: string, urls: readonly string[]): number[] {
    return urls.map((url) => this.#slots.get(`link ${prefix} ${url}`) ?? -1);
  }

  slotOf(url: string): number {
    return this.#slots.get(makeTargetKey(url, undefined)) ?? -1;
  }
}

/** One worker thread under test. */
export class GateWorker {
  readonly planner: TestPlanner;
  readonly metrics: MetricBlock;
  readonly active: ActiveCounts;
  readonly logs: Extract<FromWorker, { type: "log" }>[] = [];
  readonly cuts: Extract<FromWorker, { type: "streams-cut" }>[] = [];
  readonly figures: GuestFigures[] = [];
  readonly worker: Worker;
  readonly shared: SharedBuffers;
  /** Created with the first request of an AI route; removed when the worker stops. */
  readonly ledgerFolder = join(tmpdir(), `gate-ledger-${process.hrtime.bigint()}`);
  port = 0;
  #seq = 0;

  constructor(
    shared: SharedBuffers,
    workerIndex: number,
    planner: TestPlanner,
    port: number,
    revocations?: WorkerInit["revocations"],
  ) {
    const metrics = allocateMetricBlock();
    this.shared = shared;
    this.planner = planner;
    this.metrics = new MetricBlock(metrics);
    this.active = new ActiveCounts(shared);
    this.worker = new Worker(ENTRY, {
      workerData: {
        workerIndex,
        shared,
        metrics,
        listen: { host: "127.0.0.1", port, reusePort: port !== 0 },
        ledger: {
          folder: this.ledgerFolder,
          instance: `${Date.now()}-${process.pid}-${workerIndex}`,
          gateway: "gate",
        },
        ...(revocations === undefined ? {} : { revocations }),
      },
    });
    this.worker.on("message", (message: FromWorker) => {
      if (message.type === "log") this.logs.push(message);
      if (message.type === "guest-figures") this.figures.push(...message.figures);
      if (message.type === "streams-cut") this.cuts.push(message);
    });
  }

  send(message: ToWorker): void {
    this.worker.postMessage(message);
  }

  async hear<T extends FromWorker["type"]>(type: T): Promise<Extract<FromWorker, { type: T }>> {
    for (;;) {
      const [message] = (await once(this.worker, "message")) as [FromWorker];
      if (message.type === type) return message as Extract<FromWorker, { type: T }>;
    }
  }

  /** Applies and waits for the answer. */
  async apply(change: {
    routes?: TestRoute[];
    remove?: RouteKey[];
    globals?: GlobalSpec;
    guests?: GuestChange;
    budgets?: readonly AiBudget[];
  }): Promise<FromWorker> {
    const seq = ++this.#seq;
    this.send({
      type: "apply",
      seq,
      upsert: (change.routes ?? []).map((route) => this.planner.plan(route)),
      remove: change.remove ?? [],
      ...(change.globals === undefined ? {} : { globals: change.globals }),
      ...(change.guests === undefined ? {} : { guests: change.guests }),
      ...(change.budgets === undefined ? {} : { budgets: change.budgets }),
    });
    for (;;) {
      const [message] = (await once(this.worker, "message")) as [FromWorker];
      if (message.type === "listening") this.port = message.port;
      if ((message.type === "applied" || message.type === "apply-failed") && message.seq === seq) {
        return message;
      }
    }
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
    rmSync(this.ledgerFolder, { recursive: true, force: true });
  }
}

/** Starts a worker with routes and waits until it listens. */
export async function startGate(
  routes: TestRoute[],
  globals: Partial<GlobalSpec> = {},
  revocations?: WorkerInit["revocations"],
): Promise<GateWorker> {
  const gate = new GateWorker(allocateSharedBuffers(2), 0, new TestPlanner(), 0, revocations);
  const answer = await gate.apply({ routes, globals: { ...GLOBALS, ...globals } });
  if (answer.type !== "applied") throw new Error(JSON.stringify(answer));
  return gate;
}

/** An HTTP upstream on a free port. */
export async function startUpstream(
  listener: RequestListener,
  port = 0,
): Promise<{ url: string; port: number; server: Server; stop: () => Promise<void> }> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: real } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${real}`, port: real, server, stop };
}

/** A raw TCP upstream on a free port. */
export async function startRawUpstream(
  onSocket: (socket: Socket) => void,
): Promise<{ url: string; stop: () => void }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** An answer read whole. */
export interface TestAnswer {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

/** One request on a connection of its own; the path is sent as it is. */
export async function ask(
  port: number,
  path: string,
  options: { method?: string; headers?: Record<string, string | string[]>; body?: string } = {},
): Promise<TestAnswer> {
  const { method = "GET", headers = {}, body } = options;
  const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  answer.setEncoding("utf8");
  for await (const chunk of answer) text += chunk as string;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: text };
}

/** Sends bytes and reads until the other side closes or `until` is in what came. */
export async function sendRaw(port: number, bytes: string, until = "\0never"): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1");
  socket.write(bytes, "latin1");
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (text.includes(until)) resolve();
    });
    socket.on("close", () => resolve());
    socket.on("error", () => resolve());
  });
  socket.destroy();
  return text;
}
