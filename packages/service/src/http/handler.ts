// A request's way: route → caller → body → handler → answer.
import { timingSafeEqual } from "node:crypto";
import { Framing, type Exchange, type RequestEnd } from "@platform/http1";
import {
  createRetryLaterError,
  getProblemHeaders,
  PlatformError,
  toProblem,
} from "@platform/kernel/errors";
import {
  BodyBudget,
  checkContentCoding,
  checkLoopback,
  type Guard,
} from "@platform/kernel/http-parts";
import { requireScope, type Caller } from "@platform/kernel/identity";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import { reportError } from "../error/error-report.ts";
import { HttpError } from "../error/http-error.ts";
import { FileResult } from "../result/file-result.ts";
import { isJsonType, parseBody, parseJson } from "../request/parse-body.ts";
import { Router } from "../route/router.ts";
import { validate } from "../schema/validate.ts";
import { Call, type CallContext } from "./call.ts";
import { collectBody, streamBody } from "./collect-body.ts";
import type { RequestObserver } from "./observer.ts";
import { sendResult, type ResultContext } from "./send-result.ts";
import { PROOF_FIELD } from "./proof.ts";
import type { ServedRoute } from "./served-route.ts";
import type { Sockets } from "./sockets.ts";

/** Details of errors in answers, during development. */
interface ErrorDetails {
  readonly hasDetails: boolean;
  readonly consoleUrl?: string | undefined;
}

/** Options of {@link RequestHandler}. */
export interface RequestHandlerOptions extends CallContext {
  /** Undefined in production: answers have no details of errors. */
  readonly development: ErrorDetails | undefined;
  readonly routes: readonly ServedRoute[];
  /** Paths of the server itself: probes, metrics, documentation. */
  readonly ownPaths: ReadonlyMap<string, OwnPath>;
  /** Returns the caller of a request, for routes that require one. */
  readonly guard: Guard;
  readonly observer: RequestObserver;
  readonly sockets: Sockets;
  readonly clock: Clock;
  /** Maximum number of requests whose handlers run; further ones receive 503. */
  readonly requestsMax: number;
}

/** Answers a path of the server itself with GET; the result is sent like that of a handler. */
export type OwnPath = (call: Call) => unknown;

/** Memory for bodies of all requests, and of one address. */
const BODY_BYTES_TOTAL = 268_435_456;
const BODY_BYTES_PER_CLIENT = 67_108_864;
const LATE_CHECK_MS = 500;
const DOTTED = /(?:^|\/)\.{1,2}(?:\/|$)|%2e/i;

/** Handles the requests of a service. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #router = new Router<ServedRoute>();
  readonly #budget = new BodyBudget({
    bytesMax: BODY_BYTES_TOTAL,
    bytesPerClientMax: BODY_BYTES_PER_CLIENT,
  });
  readonly #results: ResultContext;
  /** Calls that wait for a promise of their handler. */
  readonly #waiting = new Set<Call>();
  /** Calls that have not ended, including streams. */
  readonly #open = new Set<Call>();
  readonly #timer: RepeatingTimer;

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    for (const route of options.routes) this.#router.add(route);
    this.#results = {
      sockets: options.sockets,
      onLateError: (call, error) => {
        call.error ??= error;
        const { path, declaredAt } = call;
        call.log.error("answer broke off", { path, declared_at: declaredAt, error });
      },
    };
    this.#timer = every(
      LATE_CHECK_MS,
      () => this.#failLate(),
      (error) => options.log.error("timeouts failed", { error }),
    );
  }

  /** Handles a request; the engine calls this when its head is complete. */
  readonly handle = (exchange: Exchange): void => {
    const call = new Call(exchange, this.#options);
    this.#open.add(call);
    exchange.onAborted = () => call.abort(new Error("the client has disconnected"));
    exchange.onEnd = (_, end) => this.#end(call, end);
    try {
      this.#begin(call);
    } catch (error) {
      this.#fail(call, error);
    }
  };

  /** Ends streams gracefully: their sources are closed and their signals aborted. */
  endStreams(): void {
    for (const call of this.#open) {
      if (call.exchange.answered) call.abort(new Error("the service is stopping"));
    }
  }

  /** Stops checking for late handlers; those that still run are aborted. */
  async close(): Promise<void> {
    await this.#timer.stop();
    for (const call of this.#open) call.abort(new Error("the service is stopping"));
  }

  #begin(call: Call): void {
    const { ownPaths, requestsMax } = this.#options;
    const own = ownPaths.get(call.path);
    if (own !== undefined) {
      call.isRoutine = true;
      return this.#answerOwn(call, own);
    }
    if (this.#waiting.size >= requestsMax) {
      throw createRetryLaterError("overloaded", "Too many requests are being handled.", 1);
    }
    if (DOTTED.test(call.path)) throw new HttpError(400, "The path contains dot segments.");
    const match = this.#router.find(call.method, call.path);
    switch (match.kind) {
      case "found":
        call.route = match.route;
        call.params = match.params;
        return this.#admit(call, match.route);
      case "other-methods":
        if (call.method !== "OPTIONS") throw methodNotAllowed(call.method, match.allow);
        call.exchange.respond({ status: 204, headers: [["Allow", match.allow]] });
        return undefined;
      case "malformed":
        throw new HttpError(400, "The path is not valid UTF-8.");
      case "none":
        throw new HttpError(404, `No route for ${call.path}.`);
      default:
        return match satisfies never;
    }
  }

  #answerOwn(call: Call, own: OwnPath): void {
    if (call.method !== "GET" && call.method !== "HEAD") {
      throw methodNotAllowed(call.method, "GET, HEAD");
    }
    this.#settle(call, () => own(call));
  }

  #admit(call: Call, route: ServedRoute): void {
    if (route.proof !== undefined) checkProof(call, route.proof);
    if (route.scopes === undefined) return this.#receive(call, route);
    const { headers, method, path } = call;
    const caller = this.#options.guard({
      headers: { get: (name) => headers.get(name) ?? null, has: (name) => headers.has(name) },
      method,
      path,
      peer: call.peer,
    });
    if (!(caller instanceof Promise)) return this.#receiveFrom(call, route, caller);
    caller
      .then((late) => call.isOver || this.#receiveFrom(call, route, late))
      .catch((error: unknown) => this.#fail(call, error));
    return undefined;
  }

  #receiveFrom(call: Call, route: ServedRoute, caller: Caller): void {
    for (const scope of route.scopes ?? []) requireScope(caller, scope);
    call.caller = caller;
    this.#receive(call, route);
  }

  #receive(call: Call, route: ServedRoute): void {
    const { body } = route.options;
    if (body === "stream") {
      call.body = streamBody(call, route.bodyBytesMax);
      return this.#invoke(call, route);
    }
    const isBodiless = call.exchange.head.framing === Framing.None;
    if (isBodiless || call.method === "GET" || call.method === "HEAD") {
      if (body === "bytes") call.body = Buffer.alloc(0);
      return this.#invoke(call, route);
    }
    // Handlers of bytes read the field themselves.
    if (body !== "bytes") checkContentCoding({ get: (name) => call.headers.get(name) ?? null });
    const done = (bytes: Buffer): void => {
      try {
        this.#parse(call, route, bytes);
      } catch (error) {
        this.#fail(call, error);
      }
    };
    const fail = (error: PlatformError): void => this.#fail(call, error);
    return collectBody(call, route.bodyBytesMax, this.#budget, done, fail);
  }

  #parse(call: Call, route: ServedRoute, bytes: Buffer): void {
    const type = call.headers.get("content-type");
    if (route.options.body === "bytes") call.body = bytes;
    else if (bytes.length === 0) call.body = undefined;
    else if (isJsonType(type)) call.body = parseJson(bytes);
    else {
      parseBody(bytes, type)
        .then((body) => {
          call.body = body;
          if (!call.isOver) this.#invoke(call, route);
        })
        .catch((error: unknown) => this.#fail(call, error));
      return;
    }
    this.#invoke(call, route);
  }

  #invoke(call: Call, route: ServedRoute): void {
    const { body, query } = route.options;
    const handler = route.handler as (request: unknown) => unknown;
    if (typeof body !== "object" && typeof body !== "function" && query === undefined) {
      return this.#settle(call, () => handler(call), route.timeoutMs);
    }
    return this.#settle(call, () => validateAndHandle(call, route, handler), route.timeoutMs);
  }

  /** Sends the result of `work`, immediately or when its promise is resolved. */
  #settle(call: Call, work: () => unknown, timeoutMs = Infinity): void {
    const result = work();
    if (!isThenable(result)) return this.#send(call, result);
    call.deadlineMs = this.#options.clock.monotonicMs() + timeoutMs;
    this.#waiting.add(call);
    Promise.resolve(result)
      .finally(() => this.#waiting.delete(call))
      .then((late) => this.#send(call, late))
      .catch((error: unknown) => this.#fail(call, error));
    return undefined;
  }

  #send(call: Call, result: unknown): void {
    if (call.isOver || call.exchange.answered) {
      dropResult(result).catch((error: unknown) => this.#fail(call, error));
      return;
    }
    const sent = sendResult(call, result, this.#results);
    sent?.catch((error: unknown) => this.#fail(call, error));
  }

  #fail(call: Call, thrown: unknown): void {
    const { exchange } = call;
    const error = thrown instanceof Error ? thrown : new NotAnErrorError(thrown, call.declaredAt);
    if (call.isOver || exchange.answered) {
      // The client has its answer already, or is gone; the error must not be lost.
      const { path, declaredAt } = call;
      call.log.error("handler failed after the answer", { path, declared_at: declaredAt, error });
      return;
    }
    call.error = error;
    const { development } = this.#options;
    try {
      respondProblem(call, error, development);
    } catch (invalid) {
      // The error has a field that cannot be sent.
      call.error = invalid;
      respondProblem(call, invalid, development);
    }
  }

  #failLate(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const call of this.#waiting) {
      if (nowMs < call.deadlineMs || call.exchange.answered || call.isOver) continue;
      const error = new HandlerTimeoutError(call.route?.timeoutMs ?? 0, call.declaredAt);
      call.abort(error);
      this.#fail(call, error);
    }
  }

  #end(call: Call, end: RequestEnd): void {
    this.#open.delete(call);
    call.finish();
    this.#options.observer.record(call, end.status, end.totalMs);
  }
}

/** A handler that did not return in time. */
class HandlerTimeoutError extends PlatformError {
  constructor(timeoutMs: number, declaredAt: string) {
    super("internal", `The handler did not answer within ${timeoutMs} ms.`);
    this.name = "HandlerTimeoutError";
    this.stack = `${this.name}: ${this.message}\n    at the route ${declaredAt}`;
  }
}

/** A handler threw another value than an Error, which has no stack. */
class NotAnErrorError extends Error {
  constructor(thrown: unknown, declaredAt: string) {
    super(`the handler threw ${thrown === null ? "null" : `a value of type ${typeof thrown}`}`);
    this.name = "NotAnErrorError";
    this.stack = `${this.name}: ${this.message}\n    at the route ${declaredAt}`;
    this.cause = thrown;
  }
}

/** Throws 403 if the gateway has not applied the access rules of a route; programs on this machine need no gateway. */
function checkProof({ headers, peer }: Call, proof: Buffer): void {
  const given = Buffer.from(headers.get(PROOF_FIELD) ?? "", "latin1");
  if (given.length === proof.length && timingSafeEqual(given, proof)) return;
  if (checkLoopback({ peer, getHeader: (name) => headers.get(name) }).allowed) return;
  throw new HttpError(
    403,
    "The access rules of this route are applied by the platform's gateway, and this request did not come through it.",
  );
}

async function validateAndHandle(
  call: Call,
  { options }: ServedRoute,
  handler: (request: unknown) => unknown,
): Promise<unknown> {
  const { body, query } = options;
  if (query !== undefined) call.setQuery(await validate(query, "query", listQuery(call.query)));
  if (typeof body === "object" || typeof body === "function") {
    call.body = await validate(body, "body", call.body);
  }
  return handler(call);
}

/** A single value is a string, several are an array. The object has no prototype, so any name is safe. */
function listQuery(query: unknown): Record<string, string | string[]> {
  const values = Object.create(null) as Record<string, string | string[]>;
  const search = query as URLSearchParams;
  for (const name of new Set(search.keys())) {
    const all = search.getAll(name);
    values[name] = all.length === 1 ? all[0]! : all;
  }
  return values;
}

function methodNotAllowed(method: string, allow: string): PlatformError {
  return new HttpError(405, `${method} is not allowed; the methods are ${allow}.`, {
    headers: { Allow: allow },
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

function respondProblem(call: Call, error: unknown, development: ErrorDetails | undefined): void {
  const plain = toProblem(error, { instance: call.path, traceId: call.traceId });
  const isDescribed = development !== undefined && plain.status >= 500;
  const problem = isDescribed ? { ...plain, ...describeFailure(call, error, development) } : plain;
  const headers = Object.entries(getProblemHeaders(error));
  headers.push(["X-Content-Type-Options", "nosniff"], ["Cache-Control", "no-store"]);
  call.exchange.respond({ status: problem.status, headers, body: JSON.stringify(problem) });
}

/** The details for a program of this machine; for a client of the gateway, where its author finds them. */
function describeFailure(
  { peer, headers, traceId }: Call,
  error: unknown,
  { hasDetails, consoleUrl }: ErrorDetails,
): object {
  const getHeader = (name: string): string | undefined => headers.get(name);
  if (hasDetails && checkLoopback({ peer, getHeader }).allowed) {
    return { development: reportError(error) };
  }
  return consoleUrl === undefined ? {} : { log: `${consoleUrl}/ui/runtime/logs?q=${traceId}` };
}

/** Closes a result that has no receiver. */
async function dropResult(result: unknown): Promise<void> {
  if (result instanceof FileResult) await result.answer.content?.close();
  else if (result instanceof Response) await result.body?.cancel();
}
