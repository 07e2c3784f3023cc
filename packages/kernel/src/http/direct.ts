// Direct operations: handled with node's request and response, without the Request, Response and streams of the Fetch
// standard, which take several times the CPU of a small operation.
import type { IncomingMessage, ServerResponse } from "node:http";
import { PlatformError } from "../errors/index.ts";
import type { ApiOptions } from "./api-options.ts";
import { formatJson, toStatusAnswer } from "./answer.ts";
import { mapLegacyPath } from "./path.ts";
import { checkBody, checkContentCoding, checkJsonType, parseJson } from "./request-input.ts";
import type { ApiRoute, DirectExchange, HeaderReader } from "./route.ts";
import {
  admitCaller,
  formatProblem,
  getBodyBound,
  reserveBody,
  SECURITY_HEADERS,
  startScope,
  type Observer,
  type Scope,
} from "./scope.ts";

const RESPONSE_HEADERS = Object.fromEntries(SECURITY_HEADERS);

/**
 * Creates the dispatcher of direct operations. It handles requests whose path is that of the operation (or its legacy
 * form), without a query, and whose body has a declared length within the maximum. It returns false for all others,
 * which are left to the router.
 */
export function createDirectDispatcher(
  options: ApiOptions,
  observe: Observer,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const routes = new Map<string, ApiRoute>();
  for (const route of options.routes) {
    if (route.isDirect === true) routes.set(`${route.method} ${route.path}`, route);
  }
  return (request, response) => {
    const { method = "", url = "" } = request;
    const route = routes.get(`${method} ${mapLegacyPath(url)}`);
    if (route === undefined || !hasLengthWithin(request, getBodyBound(options, route)))
      return false;
    void answer(options, observe, route, request, response);
    return true;
  };
}

function hasLengthWithin({ headers }: IncomingMessage, bytesMax: number): boolean {
  const length = headers["content-length"];
  return length !== undefined && Number(length) <= bytesMax;
}

async function answer(
  options: ApiOptions,
  observe: Observer,
  route: ApiRoute,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url = "" } = request;
  const headers = new RawHeaders(request.rawHeaders);
  const scope = startScope(options, method, url, headers, request.socket);
  scope.route = route.path;
  const result = await run(options, route, scope, request, headers).catch((error: unknown) => {
    scope.error = error;
    return formatProblem(error, scope);
  });
  observe(scope, method, result.status);
  const length = Buffer.byteLength(result.body);
  response.writeHead(result.status, {
    ...RESPONSE_HEADERS,
    ...result.headers,
    "content-length": length,
  });
  response.end(result.body);
}

async function run(
  options: ApiOptions,
  route: ApiRoute,
  scope: Scope,
  request: IncomingMessage,
  headers: HeaderReader,
): Promise<{ status: number; headers: Record<string, string>; body: string }> {
  const { path, peer, span, logger } = scope;
  const guarded = { headers, method: route.method, path, peer };
  const caller = await admitCaller(options.guard, route, guarded);
  const reservation = reserveBody(options, caller, peer);
  try {
    const length = Number(headers.get("content-length"));
    checkContentCoding(headers);
    if (length > 0) checkJsonType(headers.get("content-type"));
    reservation?.add(length);
    const body = checkBody(route, parseJson(await readBytes(request), headers.get("content-type")));
    const exchange: DirectExchange<unknown> = { ...guarded, body, caller, span, logger };
    return toJsonAnswer(route, await route.handle(exchange as never));
  } finally {
    reservation?.release();
  }
}

function toJsonAnswer(route: ApiRoute, result: unknown) {
  const { status, body } = toStatusAnswer(route, result);
  const headers = { "content-type": "application/json" };
  return { status, headers, body: formatJson(route, body) };
}

// The HTTP parser enforces the declared length.
function readBytes(request: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const fail = (cause?: unknown): void => {
      if (request.readableEnded) return;
      reject(new PlatformError("bad_request", "The request body is incomplete.", { cause }));
    };
    if (request.destroyed) fail();
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on("error", fail);
    request.on("close", fail);
  });
}

/** Request headers; repeated ones are joined as in the Fetch standard. Node's own object drops some repetitions. */
class RawHeaders implements HeaderReader {
  readonly #values = new Map<string, string>();

  constructor(raw: readonly string[]) {
    for (let at = 0; at < raw.length; at += 2) {
      const name = raw[at]!.toLowerCase();
      const before = this.#values.get(name);
      this.#values.set(name, before === undefined ? raw[at + 1]! : `${before}, ${raw[at + 1]}`);
    }
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase());
  }
}
