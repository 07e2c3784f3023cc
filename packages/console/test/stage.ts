// A service with a console in this process: two tokens, an endpoint for each method, a clock that tests move.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { AdminFeeds } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import {
  createApi,
  createBearerGuard,
  defineRoute,
  listenHttp,
  type ApiRoute,
} from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createConfiguredVerifier } from "@platform/kernel/identity";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock, type Clock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";
import { z } from "zod";
import type { ServiceId } from "@platform/console/contract";
import { ServiceConsole, type ServiceConsoleOptions } from "../src/service/service-console.ts";

/** The operator's token of the service. */
export const TOKEN = "operator-token-of-the-sample-service";

/** An answer. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests assert on members of JSON documents
  body: any;
}

/** A running service. */
export interface Stage {
  url: string;
  origin: string;
  log: string[];
  /** Paths of the requests that reached the service's own endpoint. */
  reached: string[];
  advance: (ms: number) => void;
  /** Sends a request as the page does; `headers` replace its headers, null removes one. */
  call: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string | null>,
  ) => Promise<Answer>;
  /** Signs in; returns the Cookie header. */
  signIn: () => Promise<string>;
}

/** A clock that tests move. */
export function createMovedClock(): { clock: Clock; advance: (ms: number) => void } {
  let ahead = 0;
  return {
    clock: {
      now: () => systemClock.now() + ahead,
      monotonicMs: () => systemClock.monotonicMs() + ahead,
    },
    advance: (ms) => void (ahead += ms),
  };
}

/** Writes a small page; returns its folder. */
export function writePage(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "console-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const page = join(folder, "dist");
  mkdirSync(join(page, "assets"), { recursive: true });
  writeFileSync(join(page, "assets", "index-1a2b.js"), "export {};\n");
  writeFileSync(join(page, "assets", "index-1a2b.js.br"), "compressed");
  writeFileSync(join(page, "index.html"), "<!doctype html><title>Console</title>");
  return page;
}

/** Starts the service. Without `hasToken` it has no credentials. */
export async function startStage(
  t: TestContext,
  options: Partial<ServiceConsoleOptions> & {
    hasToken?: boolean;
    id?: ServiceId;
    routes?: ApiRoute[];
  } = {},
): Promise<Stage> {
  const { hasToken = true, id = "notify", routes = [], ...more } = options;
  const { clock, advance } = createMovedClock();
  const log: string[] = [];
  const logger = createLogger({
    service: id,
    level: "debug",
    format: "json",
    write: (line) => void log.push(line),
  });
  const verifier = createConfiguredVerifier({
    config: {},
    operatorToken: hasToken ? TOKEN : undefined,
    clock,
    log: logger,
  });
  const webConsole = new ServiceConsole({
    id,
    version: "1",
    features: ["samples"],
    credentials: hasToken ? "token" : undefined,
    guard: createBearerGuard(verifier),
    clock,
    pageFolder: writePage(t),
    ...more,
  });
  const health = new HealthRegistry({ service: id, version: "1" });
  health.setState("ready");
  const registry = new MetricRegistry();
  const { guard } = webConsole;
  const feeds = new AdminFeeds({
    service: id,
    version: "1",
    figures: [],
    registry,
    health,
    guard,
    clock,
    logger,
  });
  const reached: string[] = [];
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
  const api = createApi({
    service: id,
    version: "1",
    routes: [
      ...methods.map((method) =>
        defineRoute({
          method,
          path: "/api/v1/{path*}",
          summary: "Sample",
          bodyKind: "bytes",
          answer: z.object({ path: z.string(), caller: z.string() }),
          handle: ({ path, caller }) => {
            reached.push(`${method} ${path}`);
            return { path, caller: caller.kind };
          },
        }),
      ),
      ...routes,
      ...feeds.createRoutes(),
      ...webConsole.createRoutes(),
    ],
    guard,
    health,
    metrics: registry,
    logger,
    tracer: createTracer({ ids: createIdSource(), clock }),
    clock,
  });
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: api.fetch,
    onUpgrade: feeds.onUpgrade,
  });
  feeds.start();
  t.after(async () => {
    await feeds.close();
    await listener.close(0);
  });
  const { url } = listener;
  const call = createCaller(url);
  return {
    url,
    origin: url,
    log,
    reached,
    advance,
    call,
    signIn: async () => readSetCookie(await call("POST", "/console/login", { token: TOKEN })),
  };
}

/** The Cookie header for the first cookie that an answer sets. */
export function readSetCookie(answer: Answer): string {
  const [cookie = ""] = answer.headers.getSetCookie();
  return cookie.split(";", 1)[0]!;
}

/** Creates the function that sends requests as a page of the origin does. node:http sends Host, Origin and paths as given. */
export function createCaller(url: string, place = new URL(url)): Stage["call"] {
  return (method, path, body, headers = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const bytes = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const own: Record<string, string | null> = {
      origin: method === "GET" ? null : url,
      "sec-fetch-site": "same-origin",
      "content-type": bytes === undefined ? null : "application/json",
      "content-length": bytes === undefined ? null : String(Buffer.byteLength(bytes)),
      ...headers,
    };
    const sent = Object.entries(own).filter(
      (entry): entry is [string, string] => entry[1] !== null,
    );
    const { hostname, port } = place;
    const outgoing = httpRequest({
      hostname,
      port,
      method,
      path,
      headers: Object.fromEntries(sent),
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const received = new Headers();
        for (let at = 0; at < response.rawHeaders.length; at += 2) {
          received.append(response.rawHeaders[at]!, response.rawHeaders[at + 1]!);
        }
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          parsed = undefined;
        }
        resolve({ status: response.statusCode!, headers: received, text, body: parsed });
      });
    });
    outgoing.end(bytes);
    return promise;
  };
}
