// The inspector: a page on 127.0.0.1 that shows the requests of the client's tunnels and sends them again.
import type { IncomingMessage, ServerResponse } from "node:http";
import { checkLoopback, listenHttp, type HttpListener } from "@platform/kernel/http";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { RequestEvents, Welcome } from "../frame/messages.ts";
import { Activity, countRequests, TRACE_SECONDS } from "./activity.ts";
import { loadAssets, type Asset } from "./assets.ts";
import { LiveFeed } from "./live-feed.ts";
import { RelayApi, type RelayApiOptions, type RelayCall } from "./relay-api.ts";

/** Options of {@link startInspector}. */
export interface InspectorOptions extends RelayApiOptions {
  /** Wanted port; if it is in use, one of the next is taken. 0 takes any. */
  port: number;
  /** Targets as typed, in the order of the tunnels. */
  targets: readonly string[];
}

/** A tunnel as the page shows it. */
interface ShownTunnel {
  /** "" if the relay has refused it. */
  readonly id: string;
  readonly url: string;
  readonly target: string;
  readonly error: string;
}

const PORTS_TRIED = 20;
const PING_MS = 15_000;
const SECOND_MS = 1_000;
const BODY_BYTES_MAX = 2_097_152;
const CONNECTIONS_MAX = 128;
const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

/** Calls that are passed to the relay: methods, path of the page, and whether a body is sent. */
const CALL =
  /^\/api\/tunnels\/([A-Za-z0-9-]{1,64})\/(requests(?:\/[\w-]{1,64})?|replay\/[\w-]{1,64}|share|shares(?:\/[\w-]{1,64})?)$/;

/** Starts the inspector on 127.0.0.1. */
export async function startInspector(options: InspectorOptions): Promise<Inspector> {
  const inspector = new Inspector(options);
  await inspector.listen();
  return inspector;
}

/** The inspector. Its methods `on…` receive the client's events. */
export class Inspector {
  readonly #options: InspectorOptions;
  readonly #relay: RelayApi;
  readonly #assets = loadAssets();
  readonly #feed = new LiveFeed();
  #listener: HttpListener | undefined;
  #timers: RepeatingTimer[] = [];
  #tunnels: ShownTunnel[] = [];
  /** By tunnel id: a name that is taken back after a lost connection keeps its counts. */
  #activities = new Map<string, Activity>();
  /** Null while the client is not connected. */
  #connectedMs: number | null = null;

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.#relay = new RelayApi(options);
  }

  /** URL of the page. */
  get url(): string {
    return `http://127.0.0.1:${this.#listener?.port}`;
  }

  /** Listens on the wanted port, or the next free one. */
  async listen(): Promise<void> {
    const { port } = this.#options;
    for (let tried = 0; ; tried++) {
      try {
        this.#listener = await this.#open(port === 0 ? 0 : port + tried);
        break;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== "EADDRINUSE" || tried === PORTS_TRIED || port + tried >= 65_535) throw error;
      }
    }
    const repeat = (ms: number, work: () => void) => every(ms, work, () => {});
    this.#timers = [
      repeat(PING_MS, () => this.#feed.ping()),
      repeat(SECOND_MS, () => this.#tick()),
    ];
  }

  onWelcome({ tunnels }: Welcome): void {
    this.#connectedMs = performance.now();
    this.#tunnels = tunnels.map((grant, index) => {
      const target = this.#options.targets[index] ?? "";
      return "error" in grant
        ? { id: "", url: "", target, error: grant.error.detail }
        : { id: grant.id, url: grant.url, target, error: "" };
    });
    this.#activities = new Map(
      this.#tunnels
        .filter(({ id }) => id !== "")
        .map(({ id }) => [id, this.#activities.get(id) ?? new Activity(nowSecond())]),
    );
    this.#feed.send("state", this.#state);
    this.#feed.send("trace", this.#describeTraces(TRACE_SECONDS));
  }

  onRequests(events: RequestEvents): void {
    const { requests } = events;
    countRequests(events, (tunnel) => this.#activities.get(this.#tunnels[tunnel]?.id ?? ""));
    const ids = requests.map(({ tunnel }) => this.#tunnels[tunnel]?.id ?? "");
    this.#feed.notice(new Set(ids));
  }

  onLost(): void {
    this.#connectedMs = null;
    this.#feed.send("state", this.#state);
  }

  async close(): Promise<void> {
    await Promise.all(this.#timers.map((timer) => timer.stop()));
    this.#feed.close();
    await this.#listener?.close(0);
  }

  get #state(): object {
    return {
      relay: this.#options.relay,
      connected: this.#connectedMs !== null,
      connected_ms: this.#connectedMs === null ? 0 : performance.now() - this.#connectedMs,
      tunnels: this.#tunnels,
    };
  }

  #tick(): void {
    const second = nowSecond();
    for (const activity of this.#activities.values()) activity.advance(second);
    // Timers are late at times: a page that missed a second gets it with the next.
    if (this.#feed.size > 0) this.#feed.send("trace", this.#describeTraces(3));
  }

  #describeTraces(seconds: number): object {
    const traces = [...this.#activities].map(([id, activity]) => [id, activity.trace(seconds)]);
    return Object.fromEntries(traces);
  }

  #open(port: number): Promise<HttpListener> {
    return listenHttp({
      address: { host: "127.0.0.1", port },
      connectionsMax: CONNECTIONS_MAX,
      connectionsPerAddressMax: CONNECTIONS_MAX,
      fetch: () => Promise.resolve(new Response(null, { status: 500 })),
      intercept: (request, response) => {
        this.#handle(request, response).catch((error: unknown) => {
          if (response.headersSent) response.destroy();
          else answerProblem(response, 502, `The relay cannot be reached: ${explain(error)}.`);
        });
        return true;
      },
    });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const url = new URL(request.url ?? "/", "http://inspector");
    const refusal = this.#refuse(request, url.pathname);
    if (refusal !== undefined) {
      answerProblem(response, 403, refusal);
      return;
    }
    const asset = this.#assets.get(url.pathname);
    if (asset !== undefined) answerAsset(request, response, asset);
    else if (url.pathname === "/api/events" && request.method === "GET") this.#stream(response);
    else await this.#pass(request, response, url);
  }

  /**
   * The reason for refusing a request. Other names for this address (DNS rebinding), forwarded requests and requests of
   * other pages are refused; a link to the page itself may be followed from anywhere.
   */
  #refuse({ headers, socket, method }: IncomingMessage, path: string): string | undefined {
    const { port } = this.#listener!;
    if (headers.host !== `127.0.0.1:${port}` && headers.host !== `localhost:${port}`) {
      return "The inspector is at 127.0.0.1 only.";
    }
    const isVisit = method === "GET" && path === "/" && headers["sec-fetch-mode"] === "navigate";
    const verdict = checkLoopback({
      peer: { kind: "tcp", address: socket.remoteAddress ?? "" },
      getHeader: (name) => {
        if (isVisit && name === "sec-fetch-site") return undefined;
        const value = headers[name];
        return Array.isArray(value) ? value.join(", ") : value;
      },
    });
    return verdict.allowed ? undefined : `Not allowed: ${verdict.reason}.`;
  }

  #stream(response: ServerResponse): void {
    const first = { state: this.#state, trace: this.#describeTraces(TRACE_SECONDS) };
    if (!this.#feed.add(response, first)) {
      answerProblem(response, 503, "Too many pages of the inspector are open.");
    }
  }

  /** Passes a call about one of the client's own tunnels to the relay. */
  async #pass(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const [, id = "", rest = ""] = CALL.exec(url.pathname) ?? [];
    if (!this.#tunnels.some((tunnel) => tunnel.id === id && id !== "")) {
      answerProblem(response, 404, "Not found.");
      return;
    }
    const { method = "" } = request;
    if (method !== "GET" && method !== "POST" && method !== "DELETE") {
      answerProblem(response, 405, "This method is not allowed.");
      return;
    }
    const body = method === "POST" ? await readJson(request, response) : undefined;
    if (response.headersSent) return;
    const call: RelayCall = { method, path: `${id}/${rest}${url.search}` };
    const answer = await this.#relay.call(body === undefined ? call : { ...call, body });
    const disposition = answer.headers["content-disposition"];
    response.writeHead(answer.status, {
      "content-type": "application/json",
      ...(disposition === undefined ? {} : { "content-disposition": disposition }),
    });
    response.end(answer.body);
  }
}

/** The body of a request with JSON; answers it otherwise. Pages of other origins cannot send this type unasked. */
async function readJson(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Buffer | undefined> {
  if (!/^application\/json(?:;|$)/i.test(request.headers["content-type"] ?? "")) {
    answerProblem(response, 415, "The body must be application/json.");
    return undefined;
  }
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > BODY_BYTES_MAX) {
      response.setHeader("connection", "close");
      answerProblem(response, 413, `The body exceeds ${BODY_BYTES_MAX} bytes.`);
      return undefined;
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function answerAsset(request: IncomingMessage, response: ServerResponse, asset: Asset): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    answerProblem(response, 405, "This method is not allowed.");
    return;
  }
  const { type, content, cacheControl } = asset;
  response.writeHead(200, {
    "content-type": type,
    "content-length": content.length,
    ...(cacheControl === undefined ? {} : { "cache-control": cacheControl }),
  });
  response.end(request.method === "HEAD" ? undefined : asset.content);
}

function answerProblem(response: ServerResponse, status: number, detail: string): void {
  response.writeHead(status, { "content-type": "application/problem+json" });
  response.end(JSON.stringify({ status, detail }));
}

function nowSecond(): number {
  return Math.floor(performance.now() / SECOND_MS);
}

function explain(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ECONNREFUSED" ? "connection refused" : message;
}
