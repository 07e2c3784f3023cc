// The guests of one request: calls them, gives their changes to the exchange, and answers when they fail.
import type { Answer, ContentFilter, HeadWriter, RequestEnd, ResponseDraft } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import {
  type BodyPart,
  Feature,
  GuestError,
  type GuestVerdict,
  type HttpGuest,
} from "@platform/wasm/http";
import { answerError, answerWith } from "../exchange/answers.ts";
import type {
  CompiledRoute,
  ExchangeGuests,
  GateExchange,
  OriginalRequest,
} from "../exchange/exchange.ts";
import type { GuestOutcome } from "../shared-state/index.ts";
import type { BodyBudget } from "./body-budget.ts";
import { outcomeOf } from "./guest-counts.ts";
import { type GuestFault, describeFault, refuseBody, refuseCall } from "./guest-fault.ts";
import type { GuestBinding, GuestRegistry, GuestRuntime } from "./guest-registry.ts";
import { HeldResponse, ReplacedContent } from "./held-response.ts";
import { type RequestBody, RequestMessages } from "./request-messages.ts";
import type { ChosenGuests, RouteGuests } from "./route-guests.ts";

/** Parts of a worker that its guests use. */
export interface GuestParts {
  readonly registry: GuestRegistry;
  readonly bodies: BodyBudget;
  /** Reports that a guest failed. */
  readonly onError: (msg: string, name: string, error: string) => void;
}

/** An instance for this request. */
interface Held {
  readonly runtime: GuestRuntime;
  readonly guest: HttpGuest;
  /** Outcome of its last call; undefined before it, and if the guest is not to blame for its end. */
  outcome: GuestOutcome | undefined;
}

const NO_BYTES = Buffer.alloc(0);
/** Memory that is claimed before a part of a body of unknown length. */
const CLAIMED_BYTES = 65_536;
const SERVER_FIELD = /^(?:connection|content[-_]length|date|transfer[-_]encoding)$/i;
const EVENT_STREAM = /^text\/event-stream\b/i;

/**
 * One request on its way past its guests:
 *
 * ```text
 *   begin --handle_request--> next ------> upstream --> filterResponse --handle_response--> draft
 *                        \--> answered           \--> answer, by the gateway --handle_response--> answer
 * ```
 *
 * An instance belongs to the request until its last call has ended. A failure is answered with 502, never passed by.
 */
export class RequestGuests implements ExchangeGuests, RequestBody {
  readonly #exchange: GateExchange;
  readonly #sequence: number;
  readonly #route: CompiledRoute;
  readonly #parts: GuestParts;
  readonly #chosen: ChosenGuests;
  readonly #messages: RequestMessages;
  #held: Held | undefined;
  #context = 0;
  #isCalling = false;
  #isLast = false;
  /** The response has not passed its guest. */
  #awaitsResponse = false;
  #hasEnded = false;
  #isBodyTooLarge = false;
  #bodyBytes = 0;
  #rejectBody: ((error: Error) => void) | undefined;
  #usedMs = 0;
  #callMs = 0;
  #original: OriginalRequest | undefined;

  constructor(
    exchange: GateExchange,
    route: CompiledRoute,
    guests: RouteGuests,
    parts: GuestParts,
  ) {
    this.#exchange = exchange;
    this.#sequence = exchange.sequence;
    this.#route = route;
    this.#parts = parts;
    this.#chosen = guests.choose(exchange);
    this.#messages = new RequestMessages(exchange, route, guests.fields, this);
  }

  get names(): string {
    const { request, response } = this.#chosen;
    const used = [request, request === response ? undefined : response];
    return used.flatMap((binding) => binding?.reference ?? []).join(",");
  }

  get usedMicroseconds(): number {
    return Math.round(this.#usedMs * 1_000);
  }

  /** Stored responses of another guest, or of another version, are not those of this one. */
  get cacheScope(): string {
    const { request, response } = this.#chosen;
    const name = (binding: GuestBinding | undefined): string =>
      binding?.find()?.module.sha256.slice(0, 16) ?? "";
    return `${name(request)} ${name(response)}`;
  }

  get cookie(): string | undefined {
    return this.#chosen.cookie;
  }

  get original(): OriginalRequest | undefined {
    return this.#original;
  }

  /** Calls `handle_request`; true if the request continues. `isLast`: no later step reads the request. */
  begin(isLast: boolean): boolean | Promise<boolean> {
    const { request, response } = this.#chosen;
    this.#isLast = isLast;
    if (request === undefined) {
      this.#awaitsResponse = response !== undefined;
      return true;
    }
    const idle = this.#takeIdle(request);
    if (idle !== undefined) return this.#handleRequest(idle);
    return this.#withInstance<boolean>(
      request,
      (held) => this.#handleRequest(held),
      (fault) => this.#refuse(request, fault),
    );
  }

  /** An instance that waits for a request, as most requests find one. */
  #takeIdle(binding: GuestBinding): Held | undefined {
    const runtime = binding.find();
    if (runtime === undefined || runtime.breaker.isOpen) return undefined;
    const guest = runtime.instances.takeIdle();
    return guest && this.#hold(runtime, guest);
  }

  writeFields(writer: HeadWriter): void {
    this.#messages.writeFollowing(writer);
  }

  filterResponse(draft: ResponseDraft): readonly ContentFilter[] {
    const { response } = this.#chosen;
    if (!this.#awaitsResponse || response === undefined) return [];
    this.#awaitsResponse = false;
    const filters: ContentFilter[] = [];
    const begin = (held: Held): void => void filters.push(...this.#filterWith(held, draft));
    const refuse = (fault: GuestFault): void => void this.#refuse(response, fault);
    const waiting = this.#withInstance(response, begin, refuse);
    if (!(waiting instanceof Promise)) return filters;
    const held = new HeldResponse({ ends: false, onTooLarge: () => undefined });
    void waiting.then(() => {
      if (!this.#isGone && !this.#exchange.answered) held.proceed(filters[0]);
    });
    return [held];
  }

  answer(answer: Answer): boolean {
    const { response } = this.#chosen;
    if (!this.#awaitsResponse || response === undefined) return false;
    this.#awaitsResponse = false;
    const result = this.#withInstance(
      response,
      (held) => this.#handleAnswer(held, answer),
      (fault) => void this.#refuse(response, fault),
    );
    if (result instanceof Promise) this.#exchange.answersLater = true;
    return true;
  }

  onTunnel(): void {
    this.#awaitsResponse = false;
    this.#release();
  }

  finish({ outcome }: RequestEnd): void {
    this.#hasEnded = true;
    this.#parts.bodies.release(this.#bodyBytes);
    this.#bodyBytes = 0;
    this.#rejectBody?.(new GuestError("trapped", "The request ended before its body."));
    if (this.#isCalling || this.#held === undefined) return;
    const isError = outcome !== "complete" && outcome !== "tunnel-closed";
    if (isError && this.#awaitsResponse) this.#cleanUp(this.#held);
    else this.#release();
  }

  // There is no response: the guest may release what it has kept for it.
  #cleanUp(held: Held): void {
    this.#awaitsResponse = false;
    const result = this.#call(held, (guest) =>
      guest.handleResponse(this.#messages, this.#context, true),
    );
    const end = (outcome: GuestOutcome): void => {
      this.#note(held, outcome);
      this.#release();
    };
    void settle(
      result,
      () => end("next"),
      (error) => end(outcomeOf(toGuestError(error).code)),
    );
  }

  get #isGone(): boolean {
    const { sequence, aborted } = this.#exchange;
    return this.#hasEnded || aborted || sequence !== this.#sequence;
  }

  #withInstance<Result>(
    binding: GuestBinding,
    work: (held: Held) => Result | Promise<Result>,
    refuse: (fault: GuestFault) => Result,
  ): Result | Promise<Result> {
    if (this.#held !== undefined) return work(this.#held);
    const runtime = binding.find();
    if (runtime === undefined) return refuse(refuseCall("The guest is not registered."));
    if (runtime.breaker.isOpen) return refuse(refuseCall("The guest has failed repeatedly."));
    const fail = (error: unknown): Result | Promise<Result> => {
      // A new version has replaced it while the request waited.
      const isReplaced = error instanceof GuestError && error.code === "closed";
      if (isReplaced && binding.find() !== runtime)
        return this.#withInstance(binding, work, refuse);
      const fault = describeFault(error);
      if (fault.isOfGuest) this.#noteFailedStart(runtime, outcomeOf(toGuestError(error).code));
      return refuse(fault);
    };
    try {
      const guest = runtime.instances.acquire();
      if (!(guest instanceof Promise)) return work(this.#hold(runtime, guest));
      return guest.then((late) => {
        const held = this.#hold(runtime, late);
        return this.#isGone ? refuse(refuseCall("The request has ended.")) : work(held);
      }, fail);
    } catch (error) {
      return fail(error);
    }
  }

  #hold(runtime: GuestRuntime, guest: HttpGuest): Held {
    this.#held = { runtime, guest, outcome: undefined };
    return this.#held;
  }

  #handleRequest(held: Held): boolean | Promise<boolean> {
    const startedMs = this.#beginCall();
    let verdict: GuestVerdict | Promise<GuestVerdict>;
    try {
      verdict = held.guest.handleRequest(this.#messages);
    } catch (error) {
      this.#endCall(startedMs);
      return this.#fail(held, error);
    }
    if (verdict instanceof Promise) {
      return verdict
        .finally(() => this.#endCall(startedMs))
        .then((result) => this.#follow(held, result))
        .catch((error: unknown) => this.#fail(held, error));
    }
    this.#endCall(startedMs);
    return this.#follow(held, verdict);
  }

  #follow(held: Held, { next, context }: GuestVerdict): boolean | Promise<boolean> {
    this.#context = context;
    if (!next) {
      this.#note(held, "answered");
      return this.#isGone ? this.#release() : this.#answerFor(held);
    }
    this.#note(held, "next");
    const { request, response } = this.#chosen;
    this.#awaitsResponse = response !== undefined;
    if (this.#isGone) {
      if (request !== response) return this.#release();
      this.#cleanUp(held);
      return false;
    }
    const { guest } = held;
    const body = guest.requestBody;
    const isRecorded = this.#route.spec.steps.record !== undefined;
    if (isRecorded && (body !== undefined || this.#messages.isRequestChanged))
      this.#original = { ...this.#messages.describeOriginal(), body: undefined };
    try {
      this.#messages.applyRequest(this.#route.spec, this.#isLast);
    } catch (error) {
      return this.#fail(held, error);
    }
    if (this.#messages.hasResponseFields)
      for (const [name, value] of this.#messages.takeResponseFields())
        this.#exchange.userData.responseFields.add(name, value);
    if (request !== response) this.#release();
    return body === undefined ? true : this.#replaceBody(body);
  }

  #replaceBody(body: Buffer): boolean | Promise<boolean> {
    const exchange = this.#exchange;
    const replace = (): boolean => {
      if (this.#isGone) return false;
      if (this.#original !== undefined)
        this.#original = { ...this.#original, body: exchange.collected ?? NO_BYTES };
      exchange.replaceBody(body);
      return true;
    };
    if (exchange.collected !== null) return replace();
    const refuse = (error: unknown): boolean => {
      if (this.#isGone || exchange.answered) return false;
      const { bodyBytesMax } = this.#route.spec;
      this.#answerFault(this.#isBodyTooLarge ? refuseBody(bodyBytesMax) : describeFault(error));
      return false;
    };
    // The rest is of no use, but the client sends it.
    const rest = attempt(() => this.readPart(Number.MAX_SAFE_INTEGER));
    if ("error" in rest) return refuse(rest.error);
    return rest.value instanceof Promise ? rest.value.then(replace, refuse) : replace();
  }

  // The guest has answered: the response guest, if it is another one, gets this answer.
  #answerFor(held: Held): boolean {
    const { status } = this.#messages;
    const headers = this.#listOwnFields();
    const body = held.guest.responseBody ?? NO_BYTES;
    this.#release();
    const { request, response } = this.#chosen;
    this.#awaitsResponse = response !== undefined && response !== request;
    answerWith(this.#exchange, { status, headers, body });
    return false;
  }

  #filterWith(held: Held, draft: ResponseDraft): readonly ContentFilter[] {
    const buffers = (held.guest.features & Feature.BufferResponse) !== 0;
    if (buffers && isEventStream(draft)) {
      this.#refuse(
        this.#chosen.response!,
        refuseCall("The guest buffers responses; an event stream has no end."),
      );
      return [];
    }
    if (!buffers) return this.#filterHead(held, draft);
    const filter: HeldResponse = new HeldResponse({
      ends: true,
      onTooLarge: (reason) => {
        if (this.#isGone || this.#exchange.answered) return;
        this.#refuse(this.#chosen.response!, refuseCall(reason));
      },
      onContent: (content) => {
        const result = this.#handleResponse(held, draft, content, content.length);
        void settle(
          result,
          (body) => filter.finish(draft.hasContent ? (body ?? content) : NO_BYTES, draft),
          (error) => void this.#fail(held, error),
        );
      },
    });
    return [filter];
  }

  #filterHead(held: Held, draft: ResponseDraft): readonly ContentFilter[] {
    const { status } = draft;
    const result = this.#handleResponse(held, draft, NO_BYTES, draft.contentLength);
    const choose = (body: Buffer | undefined): readonly ContentFilter[] => {
      const lostContent = draft.status !== status && !draft.hasContent;
      const gotContent = draft.status !== status && (status === 204 || status === 304);
      if (body === undefined && !lostContent && !gotContent) return [];
      return [new ReplacedContent(draft.hasContent ? (body ?? NO_BYTES) : NO_BYTES, draft)];
    };
    if (!(result instanceof Promise))
      return settle(result, choose, (error) => {
        this.#fail(held, error);
        return [];
      }) as readonly ContentFilter[];
    const filter = new HeldResponse({ ends: false, onTooLarge: () => undefined });
    void settle(
      result,
      (body) => filter.proceed(choose(body)[0]),
      (error) => void this.#fail(held, error),
    );
    return [filter];
  }

  #handleResponse(
    held: Held,
    draft: ResponseDraft,
    content: Buffer,
    contentLength: number,
  ): Outcome<Buffer | undefined> | Promise<Buffer | undefined> {
    this.#messages.openResponse(draft.status, draft.headers, content, contentLength);
    return this.#respond(held, false, (body) => this.#messages.applyResponse(draft, body));
  }

  #handleAnswer(held: Held, answer: Answer): void | Promise<void> {
    const { status, headers = [], body = "" } = answer;
    const bytes = Buffer.from(body);
    const isBuffered = (held.guest.features & Feature.BufferResponse) !== 0;
    this.#messages.openResponse(status, headers, isBuffered ? bytes : NO_BYTES, bytes.length);
    const result = this.#respond(held, true, () => undefined);
    return settle(
      result,
      (written) => {
        this.#exchange.respond({
          status: this.#messages.status,
          headers: this.#listOwnFields(),
          body: written ?? bytes,
        });
      },
      (error) => void this.#fail(held, error),
    );
  }

  // The server sets some fields of its own responses itself.
  #listOwnFields(): [name: string, value: string][] {
    return this.#messages.listResponseFields().filter(([name]) => !SERVER_FIELD.test(name));
  }

  /** Calls `handle_response`, and releases the instance. The result is the body that the guest has written. */
  #respond(
    held: Held,
    isError: boolean,
    apply: (body: Buffer | undefined) => void,
  ): Outcome<Buffer | undefined> | Promise<Buffer | undefined> {
    const result = this.#call(held, (guest) =>
      guest.handleResponse(this.#messages, this.#context, isError),
    );
    const end = (): Buffer | undefined => {
      this.#note(held, "next");
      const body = held.guest.responseBody;
      this.#release();
      if (this.#isGone) throw new GuestError("closed", "The request has ended.");
      apply(body);
      return body;
    };
    if (result instanceof Promise) return result.then(end);
    if ("error" in result) return result;
    return attempt(end);
  }

  #call<Result>(
    { guest }: Held,
    work: (guest: HttpGuest) => Result | Promise<Result>,
  ): Outcome<Result> | Promise<Result> {
    const startedMs = this.#beginCall();
    const result = attempt(() => work(guest));
    if ("value" in result && result.value instanceof Promise)
      return result.value.finally(() => this.#endCall(startedMs));
    this.#endCall(startedMs);
    return result as Outcome<Result>;
  }

  #beginCall(): number {
    this.#isCalling = true;
    return performance.now();
  }

  #endCall(startedMs: number): void {
    this.#isCalling = false;
    this.#callMs = performance.now() - startedMs;
    this.#usedMs += this.#callMs;
  }

  // The guest has failed: it is dropped, and the client gets an error.
  #fail(held: Held, error: unknown): false {
    const fault = this.#isBodyTooLarge ? refuseBody(this.#bodyBytesMax) : describeFault(error);
    const isGone = this.#isGone;
    held.outcome = undefined;
    if (fault.isOfGuest && !isGone) this.#note(held, outcomeOf(toGuestError(error).code));
    this.#release();
    if (isGone || this.#exchange.answered) return false;
    this.#awaitsResponse = false;
    if (fault.isOfGuest) this.#parts.onError("middleware failed", held.runtime.name, fault.cause);
    this.#answerFault(fault);
    return false;
  }

  #refuse({ reference }: GuestBinding, fault: GuestFault): false {
    this.#release();
    this.#awaitsResponse = false;
    if (this.#isGone || this.#exchange.answered) return false;
    this.#parts.onError("middleware not called", reference, fault.cause);
    this.#answerFault(fault);
    return false;
  }

  #answerFault({ code, detail, cause }: GuestFault): void {
    const headers = code === "overloaded" ? { "Retry-After": "1" } : {};
    answerError(this.#exchange, new PlatformError(code, detail, { headers, cause }));
  }

  #note(held: Held, outcome: GuestOutcome): void {
    const { breaker, counts } = held.runtime;
    held.outcome = outcome;
    if (!isSuccess(outcome)) breaker.noteFailure();
    counts.add(outcome, this.#callMs, held.guest.fuelUsed);
    this.#parts.registry.noteCall();
  }

  #noteFailedStart({ counts, breaker }: GuestRuntime, outcome: GuestOutcome): void {
    breaker.noteFailedStart();
    counts.add(outcome, 0, 0);
    this.#parts.registry.noteCall();
  }

  #release(): false {
    const held = this.#held;
    if (held === undefined) return false;
    this.#held = undefined;
    const { runtime, guest, outcome } = held;
    // A guest that passes each request and fails at its response must not close the circuit in between.
    if (outcome !== undefined && isSuccess(outcome)) runtime.breaker.noteSuccess();
    if (guest.ignoredFields > 0) runtime.counts.addIgnoredFields(guest.ignoredFields);
    runtime.instances.release(guest);
    return false;
  }

  get #bodyBytesMax(): number {
    return this.#route.spec.bodyBytesMax;
  }

  #claim(bytes: number): void {
    this.#parts.bodies.claim(bytes);
    this.#bodyBytes += bytes;
  }

  readPart(bytesMin: number): BodyPart | Promise<BodyPart> {
    const exchange = this.#exchange;
    const { head, collected } = exchange;
    if (collected !== null) return { bytes: collected, isLast: true };
    // A part without a known length is paid for when it is there, but for its first bytes.
    const expected = head.contentLength > 0 ? head.contentLength - this.#bodyBytes : CLAIMED_BYTES;
    const claimed = Math.min(bytesMin, Math.max(expected, 0));
    this.#claim(claimed);
    exchange.bodyBytesMax = this.#bodyBytesMax;
    exchange.bodyIdleMs = this.#route.spec.timeouts.idleMs;
    const { promise, resolve, reject } = Promise.withResolvers<BodyPart>();
    let now: BodyPart | undefined;
    this.#rejectBody = reject;
    exchange.readBodyPart(bytesMin, (_exchange, outcome, bytes) => {
      this.#rejectBody = undefined;
      if (outcome === "too-large" || outcome === "aborted") {
        this.#isBodyTooLarge = outcome === "too-large";
        reject(new GuestError("trapped", `The request body is not available: ${outcome}`));
        return;
      }
      try {
        this.#claim(bytes.length - claimed);
      } catch (error) {
        reject(error);
        return;
      }
      now = { bytes, isLast: outcome === "complete" };
      resolve(now);
    });
    return now ?? promise;
  }
}

/** The result of a call that has ended. */
type Outcome<Result> = { readonly value: Result } | { readonly error: unknown };

function attempt<Result>(work: () => Result): Outcome<Result> {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}

/** Continues with the result of a call: at once if it has ended. */
function settle<Result, Next>(
  result: Outcome<Result> | Promise<Result>,
  onValue: (value: Result) => Next | Promise<Next>,
  onError: (error: unknown) => Next | Promise<Next>,
): Next | Promise<Next> {
  if (result instanceof Promise) return result.then(onValue).catch(onError);
  return "error" in result ? onError(result.error) : onValue(result.value);
}

function isSuccess(outcome: GuestOutcome): boolean {
  return outcome === "next" || outcome === "answered";
}

function toGuestError(error: unknown): GuestError {
  return error instanceof GuestError ? error : new GuestError("trapped", String(error));
}

function isEventStream({ headers }: ResponseDraft): boolean {
  return headers.some(
    ([name, value]) => name.toLowerCase() === "content-type" && EVENT_STREAM.test(value),
  );
}
