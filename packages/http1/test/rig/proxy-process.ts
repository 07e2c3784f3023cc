// A proxy on the engine, run as a process of its own on either runtime: `/u/PORT/path` goes to 127.0.0.1:PORT, `/unix/path`
// to the Unix socket that it was told.
import { readFileSync } from "node:fs";

import {
  type Answer,
  type Exchange,
  type ForwardFailure,
  type ForwardObserver,
  type ForwardPlanOptions,
  type RequestEnd,
  type ForwardTarget,
  type Refused,
  type RequestTap,
  type ServerLimits,
  type ServerTimeouts,
  type ServerTls,
  type UpstreamPoolOptions,
  compilePlan,
  createEngine,
  createServer,
  createUpstreamPool,
  sendContent,
} from "../../src/index.ts";
import { chooseFilters, seen, type State, Zeros } from "./filters.ts";

/** Settings of the process, as JSON in `PROXY`. */
export interface ProxySettings {
  limits?: ServerLimits;
  timeouts?: ServerTimeouts;
  plan?: ForwardPlanOptions;
  pool?: Omit<UpstreamPoolOptions, "engine" | "addresses">;
  /** Listens on this Unix socket instead of a port. */
  listenPath?: string;
  /** The Unix socket behind `/unix`. */
  upstreamPath?: string;
  /** Result of `composeRefusal`: a text with code and path, nothing, an error, a bad field, or 40 KB. */
  refusals?: "text" | "null" | "throws" | "bad-field" | "too-large";
  /** Retries a failed attempt once on the same target if that is allowed. */
  retry?: boolean;
  tls?: {
    fallback: [cert: string, key: string];
    names?: Record<string, [cert: string, key: string]>;
    clientCa?: string;
    clientMode?: "request" | "require";
  };
}

interface Finished extends Omit<RequestEnd, "target"> {
  failures: string[];
}

const settings = JSON.parse(process.env["PROXY"] ?? "{}") as ProxySettings;
const engine = createEngine({ intervalMs: 20 });
const targets = new Map<string, ForwardTarget>();
const finished: Finished[] = [];
const ends: string[] = [];
const faults: string[] = [];
const errors: string[] = [];

const observer: ForwardObserver<State> = {
  onRequestHead(exchange, writer) {
    writer.field("X-Forwarded-For", exchange.connection.remoteAddress);
    if (exchange.head.pathString().endsWith("/bad-field")) writer.field("X", "line\nbreak");
  },
  onResponseHead(exchange, head, writer) {
    if (head.status === 299) throw new Error("thrown by the observer");
    writer.field("X-Seen", `${exchange.sequence} ${head.status}`);
  },
  onFailure(exchange, failure: ForwardFailure) {
    exchange.userData.failures.push(`${failure.kind} ${failure.code}`.trim());
    const mayRetry = settings.retry === true && failure.attempt === 1 && failure.replayable;
    return mayRetry ? failure.target : null;
  },
  onTunnel(exchange, tunnel) {
    exchange.userData.tunnel = tunnel;
  },
};

const server = createServer<State>({
  engine,
  createUserData: () => ({ failures: [], tunnel: null }),
  handler: handle,
  ...(settings.limits === undefined ? {} : { limits: settings.limits }),
  ...(settings.timeouts === undefined ? {} : { timeouts: settings.timeouts }),
  ...(settings.tls === undefined ? {} : { tls: loadTls(settings.tls) }),
  ...(settings.refusals === undefined ? {} : { composeRefusal }),
  onFault: (fault) => faults.push(`${fault.kind} ${fault.code}`),
  onHandlerError: (error) => errors.push(String(error)),
});
const place =
  settings.listenPath === undefined
    ? { host: "127.0.0.1", port: 0 }
    : { path: settings.listenPath };
await server.listen(place).catch(() => process.exit(1));
const address = server.address();
console.log(JSON.stringify({ port: address !== null && "port" in address ? address.port : 0 }));

process.on(
  "message",
  (message: { tls?: NonNullable<ProxySettings["tls"]>; drainMs?: number; streamsMs?: number }) => {
    if (message.tls !== undefined) {
      server.setTls(loadTls(message.tls));
      process.send?.({ done: true });
    }
    if (message.drainMs !== undefined) {
      void server
        .drain(message.drainMs, message.streamsMs)
        .then(() => process.send?.({ done: true }));
    }
  },
);
process.on("disconnect", () => {
  process.exit();
});

function composeRefusal(refused: Refused, path: string): Answer | null {
  switch (settings.refusals) {
    case "text":
      return {
        status: refused.status === 500 ? 503 : 400,
        headers: [["X-Code", refused.code]],
        body: `refused ${path}`,
      };
    case "throws":
      throw new Error("thrown by the composer");
    case "bad-field":
      return { status: 400, headers: [["X", "line\nbreak"]] };
    case "too-large":
      return { status: 400, body: "x".repeat(40_000) };
    default:
      return null;
  }
}

function loadTls(tls: NonNullable<ProxySettings["tls"]>): ServerTls {
  const names = new Map<string, { cert: string; key: string }>();
  for (const [name, files] of Object.entries(tls.names ?? {})) names.set(name, identity(files));
  return {
    fallback: identity(tls.fallback),
    names,
    ...(tls.clientCa === undefined
      ? {}
      : {
          clientCertificates: {
            mode: tls.clientMode ?? "require",
            ca: readFileSync(tls.clientCa, "utf8"),
          },
        }),
  };
}

function identity([cert, key]: [string, string]): { cert: string; key: string } {
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}

function handle(exchange: Exchange<State>): void {
  const path = exchange.head.pathString();
  exchange.userData.failures = [];
  exchange.onEnd = (ended, { target, ...rest }) => {
    if (target !== null) finished.push({ ...rest, failures: ended.userData.failures });
    if (path !== "/state")
      ends.push(`${path.replace(/^\/u\/\d+/, "")} ${rest.outcome} ${rest.status}`);
  };
  const forwarded = /^\/u\/(\d+)/.exec(path);
  if (forwarded !== null) {
    exchange.forward(targetOf(forwarded[1]!, forwarded[0].length), observer);
    return;
  }
  const filtered = /^\/f\/([\w-]+)\/(\d+)/.exec(path);
  if (filtered !== null) {
    exchange.requestTap = createTap();
    exchange.responseFilter = {
      onResponse: (current, draft) => chooseFilters(filtered[1]!, current, draft),
    };
    const forward = (): void =>
      exchange.forward(targetOf(filtered[2]!, filtered[0].length), observer);
    if (path.endsWith("/collected")) exchange.readBody(1_000_000, forward);
    else forward();
    return;
  }
  if (path.startsWith("/unix")) {
    exchange.forward(targetOf(settings.upstreamPath ?? "", "/unix".length), observer);
    return;
  }
  switch (path) {
    case "/state":
      respondJson(exchange, {
        server: server.counts,
        pools: Object.fromEntries([...targets].map(([port, { pool }]) => [port, pool.counts])),
        finished: finished.splice(0),
        ends: ends.splice(0),
        faults: faults.splice(0),
        errors: errors.splice(0),
        seen: seen.splice(0),
      });
      return;
    case "/who":
      respondJson(exchange, {
        ...exchange.connection,
        tls: exchange.connection.tls && {
          ...exchange.connection.tls,
          clientCertificate: exchange.connection.tls.clientCertificate?.subject.CN ?? null,
        },
      });
      return;
    case "/echo":
      exchange.readBody(1_000_000, (_, outcome, body) => {
        if (outcome === "complete") exchange.respond({ status: 200, body });
        else if (outcome === "too-large") exchange.respond({ status: 413, body: "too large" });
      });
      return;
    case "/read-then-forward": {
      const port = exchange.head.queryString() ?? "";
      exchange.readBody(1_000_000, () => {
        exchange.forwardPath = "/collected";
        exchange.forward(targetOf(port, 0), observer);
      });
      return;
    }
    case "/replace-query": {
      const [port = "", query = ""] = (exchange.head.queryString() ?? "").split("&");
      exchange.forwardQuery = query;
      exchange.forward(targetOf(port, 0), observer);
      return;
    }
    case "/stream": {
      exchange.startResponse({ status: 200, headers: [["Content-Type", "text/plain"]] });
      exchange.write("one");
      setTimeout(() => {
        exchange.write("two".repeat(20_000));
        exchange.end([["X-Sum", "3"]]);
      }, 5);
      return;
    }
    case "/take": {
      const { socket, rest } = exchange.takeSocket([
        ["Connection", "Upgrade"],
        ["Upgrade", "echo"],
      ]);
      socket.write(rest);
      socket.on("data", (chunk: Buffer) => socket.write(chunk));
      socket.on("end", () => socket.end());
      return;
    }
    case "/take-badly":
      exchange.takeSocket([["Upgrade", "echo\r\n"]]);
      return;
    case "/zeros": {
      const size = Number(exchange.head.queryString());
      sendContent(exchange, { status: 200, contentLength: size }, new Zeros(size));
      return;
    }
    case "/short":
      exchange.startResponse({ status: 200, contentLength: 10 });
      exchange.write("short");
      exchange.end();
      return;
    case "/long":
      exchange.respond({ status: 200, body: "x".repeat(Number(exchange.head.queryString())) });
      return;
    case "/late":
      setTimeout(() => exchange.respond({ status: 200, body: "late" }), 30);
      return;
    case "/throw":
      throw new Error("thrown by the handler");
    case "/refuse":
      exchange.respond({ status: 403, body: "no" });
      return;
    default:
      exchange.respond({ status: 200, body: `in place ${exchange.sequence}` });
  }
}

function createTap(): RequestTap {
  const pieces: Buffer[] = [];
  return {
    onBytes: (bytes) => {
      pieces.push(Buffer.from(bytes));
    },
    onEnd: (outcome) => {
      seen.push(`request ${outcome} ${Buffer.concat(pieces).toString().slice(0, 100)}`);
    },
  };
}

function respondJson(exchange: Exchange<State>, value: unknown): void {
  exchange.respond({
    status: 200,
    headers: [["Content-Type", "application/json"]],
    body: JSON.stringify(value),
  });
}

/** The target at a port of this machine, or at the path of a Unix socket. */
function targetOf(place: string, stripPathBytes: number): ForwardTarget {
  let target = targets.get(place);
  if (target === undefined) {
    const pool = createUpstreamPool({
      engine,
      addresses: [
        place.startsWith("/") ? { path: place } : { host: "127.0.0.1", port: Number(place) },
      ],
      ...settings.pool,
    });
    target = { pool, plan: compilePlan({ ...settings.plan, stripPathBytes }) };
    targets.set(place, target);
  }
  return target;
}
