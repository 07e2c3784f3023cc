// The admin feeds of a service: figures over time, conditions that need an operator, and both live.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { z } from "zod";
import { PlatformError } from "../errors/index.ts";
import type { HealthRegistry } from "../health/index.ts";
import {
  checkSameOrigin,
  createValidationError,
  defineRoute,
  defineUpgradeRoute,
  mapLegacyPath,
  type ApiRoute,
  type Guard,
  type GuardedRequest,
} from "../http/index.ts";
import { needScope, type Caller } from "../identity/index.ts";
import type { Logger } from "../log/index.ts";
import { USER_HTTP_METRICS, type MetricRegistry } from "../metrics/index.ts";
import { every, type Clock, type RepeatingTimer } from "../time/index.ts";
import { Attention, type Condition } from "./attention.ts";
import { Changes, type Change } from "./changes.ts";
import { createProcessFigures, createRequestFigures, type RequestMetrics } from "./figures.ts";
import { LiveSockets, refuseUpgrade } from "./live.ts";
import { SERIES_STEPS, SeriesStore, type Figure } from "./series.ts";
import { createTraceRoute, type KeptSpan } from "./trace-route.ts";

const SERIES_PATH = "/api/v1/admin/series";
const ATTENTION_PATH = "/api/v1/admin/attention";
const API_REQUESTS: RequestMetrics = {
  requests: USER_HTTP_METRICS.requests.name,
  duration: USER_HTTP_METRICS.duration.name,
};
/** Path of the WebSocket. */
export const LIVE_PATH = "/api/v1/admin/live";
/** The same for the web console of the service. */
export const CONSOLE_LIVE_PATH = "/console/live";

const figureListSchema = z
  .object({
    figures: z.array(z.object({ name: z.string(), unit: z.string(), title: z.string() })),
    values: z
      .record(z.string(), z.number().nullable())
      .meta({ description: "last sample by name" }),
  })
  .meta({ description: "the list of figures, without `names`" });
const seriesSchema = z
  .object({
    step: z.number().meta({ description: "seconds between two points" }),
    from: z.number().meta({ description: "time of the first point, epoch ms" }),
    series: z.array(
      z.object({
        name: z.string(),
        unit: z.string(),
        values: z.array(z.number().nullable()).meta({ description: "null without a sample" }),
      }),
    ),
  })
  .meta({ description: "the named figures over time" });
const attentionSchema = z.object({
  id: z.string().meta({ description: "stable while the condition lasts" }),
  level: z.enum(["warning", "critical"]),
  title: z.string(),
  detail: z.string().meta({ description: "the cause and the remedy" }),
  href: z.string().optional().meta({ description: "path in the console" }),
  since: z.string().meta({ description: "RFC 3339" }),
  service: z.string(),
});

const SAMPLE_MS = 1_000;
const ATTENTION_MS = 5_000;
const PING_MS = 30_000;
/** Maximum number of figures of one request. */
const NAMES_MAX = 50;

export interface AdminFeedsOptions {
  service: string;
  version: string;
  /** Figures of the service, besides those of its process and its requests. */
  figures: readonly Figure[];
  registry: MetricRegistry;
  /** Metrics of its requests; default: those of users' requests of every API. Undefined if they are not in the registry. */
  requests?: RequestMetrics | undefined;
  /** Conditions besides failing checks and warnings of `health`. */
  conditions?: readonly (() => readonly Condition[])[];
  health: HealthRegistry;
  /** Finds the spans that the service keeps of a trace; undefined if it keeps none. */
  findSpans?: ((traceId: string) => Promise<readonly KeptSpan[]>) | undefined;
  /** Identifies callers. */
  guard: Guard;
  /** Throws if a caller may not read the feeds. Default: requires the scope `<service>:read` or `<service>:admin`. */
  access?: (caller: Caller) => void;
  clock: Clock;
  logger: Logger;
}

/** The feeds. `start` begins to sample, `close` ends everything. */
export class AdminFeeds {
  readonly #options: AdminFeedsOptions;
  readonly #access: (caller: Caller) => void;
  readonly #series: SeriesStore;
  readonly #attention: Attention;
  readonly #changes: Changes;
  readonly #sockets: LiveSockets;
  #timers: RepeatingTimer[] = [];

  constructor(options: AdminFeedsOptions) {
    this.#options = options;
    const { service, conditions = [], health, clock, logger } = options;
    this.#access = options.access ?? needScope(`${service}:read`, `${service}:admin`);
    this.#series = new SeriesStore(listFigures(options), clock);
    this.#attention = new Attention({ service, health, clock, sources: conditions });
    this.#changes = new Changes(clock);
    this.#changes.listen((change) => this.#sockets.send({ type: "change", service, ...change }));
    this.#sockets = new LiveSockets({ logger, greet: () => this.#greet() });
  }

  /** Starts the timers. */
  start(): void {
    const onError = (error: unknown): void => {
      this.#options.logger.error("an admin feed failed", { error });
    };
    this.#timers = [
      every(SAMPLE_MS, () => this.sample(), onError),
      every(ATTENTION_MS, () => this.refresh(), onError),
      every(PING_MS, () => this.#sockets.ping(), onError),
    ];
  }

  /** Takes a sample and sends it. */
  sample(): void {
    this.#series.sample();
    const at = this.#options.clock.now();
    const { service } = this.#options;
    this.#sockets.send({ type: "figures", service, at, values: this.#series.latest });
  }

  /** Looks for conditions again, and sends them if they have changed. */
  async refresh(): Promise<void> {
    if (!(await this.#attention.refresh())) return;
    const { service } = this.#options;
    this.#sockets.send({ type: "attention", service, items: this.#attention.items });
  }

  /** Records a change of configuration, and sends it. */
  noteChange(change: Change): void {
    this.#changes.note(change);
  }

  createRoutes(): ApiRoute[] {
    const { findSpans } = this.#options;
    return [
      this.#createSeriesRoute(),
      this.#createAttentionRoute(),
      createLiveRoute(),
      ...(findSpans === undefined ? [] : [createTraceRoute(findSpans)]),
    ].map((route) => ({ ...route, access: this.#access, tag: "Operation" }));
  }

  /** Handler of a listener without other WebSockets: the live feed, or 404. */
  readonly onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (this.handleUpgrade(request, socket, head)) return;
    refuseUpgrade(socket, request, new PlatformError("not_found", "There is no WebSocket here."));
  };

  /** Handles an upgrade request to the live feed; false for any other path. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const path = mapLegacyPath((request.url ?? "/").split("?")[0] ?? "/");
    if (path !== LIVE_PATH && path !== CONSOLE_LIVE_PATH) return false;
    this.#sockets.accept(request, socket, head, () => this.admit(describeUpgrade(request, path)));
    return true;
  }

  /**
   * Checks the caller of an upgrade request to the live feed, and that no page of another site sent it. Rejects with a
   * {@link PlatformError}.
   */
  async admit(request: GuardedRequest): Promise<void> {
    const { headers } = request;
    // A page of another site could use the cookie of a session.
    const verdict = checkSameOrigin(headers.get("host") ?? "", (name) => headers.get(name));
    if (!verdict.allowed) {
      throw new PlatformError("forbidden", `Cross-site request refused: ${verdict.reason}.`);
    }
    this.#access(await this.#options.guard(request));
  }

  /** Accepts an upgrade request whose caller was admitted before; `guarded` is checked again from time to time. */
  acceptAdmitted(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    guarded: GuardedRequest,
  ): void {
    this.#sockets.accept(request, socket, head, () => this.admit(guarded));
  }

  /** Stops sampling and disconnects all clients. */
  async close(): Promise<void> {
    this.#sockets.close();
    await Promise.all(this.#timers.map((timer) => timer.stop()));
  }

  #greet(): object {
    const { service, version, clock } = this.#options;
    return {
      type: "hello",
      service,
      version,
      at: clock.now(),
      figures: this.#series.figures.map(({ name, unit, title }) => ({ name, unit, title })),
      values: this.#series.latest,
      attention: this.#attention.items,
      changes: this.#changes.recent,
    };
  }

  #createSeriesRoute(): ApiRoute {
    return defineRoute({
      answer: z.union([figureListSchema, seriesSchema]),
      method: "GET",
      path: SERIES_PATH,
      isRoutine: true,
      summary: "Figures over time, or without `names` the list of figures",
      description:
        "Steps of 1 s are kept for 5 minutes, of 10 s for 3 hours, of 300 s for a day. Without `step` the smallest one that reaches back to `from` is used. A value is null where there was no sample.",
      query: z.object({
        names: z.string().max(4096).optional().describe("Names of figures, separated by commas"),
        from: z.coerce.number().int().min(0).optional().describe("First time, epoch ms"),
        step: z.coerce
          .number()
          .refine((step) => SERIES_STEPS.some((one) => one === step), "1, 10 or 300")
          .optional()
          .describe("Seconds between two points: 1, 10 or 300"),
      }),
      handle: ({ query: { names, from = 0, step } }) => {
        if (names === undefined) {
          const figures = this.#series.figures.map(({ name, unit, title }) => ({
            name,
            unit,
            title,
          }));
          return { figures, values: this.#series.latest };
        }
        const chosen = this.#readNames(names);
        return this.#series.read(chosen, from, step ?? this.#series.chooseStep(from));
      },
    });
  }

  #createAttentionRoute(): ApiRoute {
    return defineRoute({
      method: "GET",
      path: ATTENTION_PATH,
      isRoutine: true,
      summary: "Conditions that need an operator, most severe first",
      answer: z.array(attentionSchema),
      handle: async () => {
        await this.refresh();
        return this.#attention.items;
      },
    });
  }

  #readNames(text: string): string[] {
    const names = [...new Set(text.split(",").map((name) => name.trim()))];
    if (names.length > NAMES_MAX) {
      throw refuseNames(`at most ${NAMES_MAX} figures`);
    }
    const unknown = names.find((name) => !this.#series.figures.some((one) => one.name === name));
    if (unknown === undefined) return names;
    throw refuseNames(`there is no figure ${JSON.stringify(unknown)}`);
  }
}

function refuseNames(message: string): PlatformError {
  return createValidationError([{ in: "query", path: "names", message }]);
}

function listFigures({ figures, registry, ...options }: AdminFeedsOptions): Figure[] {
  const requests = "requests" in options ? options.requests : API_REQUESTS;
  return [
    ...createProcessFigures(),
    ...(requests === undefined ? [] : createRequestFigures(registry, requests)),
    ...figures,
  ];
}

function createLiveRoute(): ApiRoute {
  return defineUpgradeRoute({
    path: LIVE_PATH,
    summary: "Live figures, conditions and changes: a WebSocket",
    description:
      "JSON messages: `hello` first, `figures` every second, `attention` and `change` when something changes. Clients that do not read miss figures, and are disconnected after 30 s. Closed with 4401 when the token or session is no longer valid.",
  });
}

/** Describes an upgrade request for a guard. */
export function describeUpgrade(request: IncomingMessage, path: string): GuardedRequest {
  const headers = {
    get: (name: string) => readHeader(request, name),
    has: (name: string) => request.headers[name.toLowerCase()] !== undefined,
  };
  const address = request.socket.remoteAddress;
  return {
    headers,
    method: "GET",
    path,
    peer: address === undefined ? { kind: "unknown" } : { kind: "tcp", address },
  };
}

function readHeader(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(", ") : (value ?? null);
}
