// The models of one request: the primary gets it, and the fallback if the primary fails before the client has got anything.
import type { Answer, FailureKind, ForwardTarget, ResponseDraft } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { answerPrepared, TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import type { ExchangeModels, GateExchange } from "../../exchange/exchange.ts";
import type { RoutingSpec } from "../../shared-state/index.ts";
import type { BodyMemory } from "../body-memory.ts";
import type { ModelCall } from "../meter/model-call.ts";

/** Reason why the fallback got the request; `failed`: it should have, but could not answer either. */
export type FallbackReason = "confidence" | "error";

/** Fields of responses that only the gateway sets, in lower case. */
const MODEL_FIELDS: readonly string[] = ["x-llm-model", "x-llm-fallback"];

/** Largest answer of the primary that is kept while the fallback answers. */
const KEPT_BYTES_MAX = 1_048_576;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const MESSAGE_FIELD = /^(?:date|content-length|transfer-encoding|connection|trailer)$/i;

/** Options of {@link ModelRoute}. */
export interface ModelRouteOptions {
  readonly spec: RoutingSpec;
  readonly exchange: GateExchange;
  readonly memory: BodyMemory;
  /** The attempt at the primary. */
  readonly primary: ModelCall;
  /** Creates the attempt at the fallback. */
  readonly createFallback: (primary: ModelCall) => ModelCall;
  /** The body of a request to a model. */
  readonly composeBody: (model: string) => Buffer;
}

/** The models of one request. */
export class ModelRoute implements ExchangeModels {
  enter: ExchangeModels["enter"] = null;
  /** Reserves tokens and money for the attempt at the fallback. Throws or rejects with PlatformError if it may not go up. */
  reserve: ((call: ModelCall) => void | Promise<void>) | undefined;
  /** The fallback has got the request. */
  isFallback = false;
  readonly #options: ModelRouteOptions;
  readonly #sequence: number;
  #call: ModelCall;
  #isTried = false;
  #kept: Answer | undefined;

  constructor(options: ModelRouteOptions) {
    this.#options = options;
    this.#sequence = options.exchange.sequence;
    this.#call = options.primary;
  }

  get target(): number {
    const { primary, fallback } = this.#options.spec;
    return this.isFallback ? fallback.target : primary.target;
  }

  /** The fallback has not been asked for yet. */
  get mayFallBack(): boolean {
    return !this.#isTried;
  }

  /** The primary's answer is kept, in case the fallback fails. */
  get hasKept(): boolean {
    return this.#kept !== undefined;
  }

  /** True for statuses after which the other model should answer. */
  isFailure(status: number): boolean {
    return this.#options.spec.statuses.includes(status);
  }

  /** True if the primary reports a confidence below the minimum. A missing or unreadable one counts as high. */
  isUnsure({ status, headers }: ResponseDraft): boolean {
    const { confidence } = this.#options.spec;
    if (confidence === undefined || status < 200 || status > 299) return false;
    const wanted = confidence.field.toLowerCase();
    const text = headers.find(([name]) => name.toLowerCase() === wanted)?.[1].trim() ?? "";
    return NUMBER.test(text) && Number(text) < confidence.min;
  }

  /** Names the model that answers, and why it does. */
  mark(draft: ResponseDraft): void {
    const { primary, fallback } = this.#options.spec;
    const { model } = this.isFallback ? fallback : primary;
    draft.headers = draft.headers.filter(([name]) => !MODEL_FIELDS.includes(name.toLowerCase()));
    draft.headers.push(["X-LLM-Model", model]);
    if (this.#call.fallback !== undefined)
      draft.headers.push(["X-LLM-Fallback", this.#call.fallback]);
  }

  /** Keeps the answer of the primary, unless it is too large. */
  keep({ status }: ResponseDraft, headers: ResponseDraft["headers"], body: Buffer): void {
    const { memory } = this.#options;
    if (body.length > KEPT_BYTES_MAX || !memory.claim(body.length)) return;
    this.#call.heldBytes += body.length;
    const kept = headers.filter(([name]) => !MESSAGE_FIELD.test(name));
    this.#kept = { status, headers: kept, body };
  }

  /** Answers with what was kept; false if there is nothing. `outcome` is that of the fallback. */
  answerKept(outcome: "answered" | "refused"): boolean {
    if (this.#kept === undefined) return false;
    this.#call.settle(outcome);
    this.#call.fallback = "failed";
    const { status, headers = [], body } = this.#kept;
    const more: [string, string][] = [
      ["X-LLM-Model", this.#options.spec.primary.model],
      ["X-LLM-Fallback", "failed"],
      [TOKEN_COST_FIELD, this.#call.costText],
    ];
    const own = new Set([...MODEL_FIELDS, TOKEN_COST_FIELD.toLowerCase()]);
    const others = [...headers].filter(([name]) => !own.has(name.toLowerCase()));
    answerPrepared(this.#options.exchange, {
      status,
      headers: [...others, ...more],
      ...(body === undefined ? {} : { body }),
    });
    return true;
  }

  onFailure(kind: FailureKind | undefined): ForwardTarget | null | Promise<ForwardTarget | null> {
    // The provider may have worked on what it did not answer in time, or whole.
    const isServed = kind === "response-timeout" || kind === "malformed-response";
    const outcome = isServed ? "answered" : "refused";
    if (!this.isFallback) return this.fallBack("error", outcome);
    this.#call.settle(outcome);
    this.#call.fallback = "failed";
    return null;
  }

  /**
   * Ends the attempt at the primary with this outcome. Returns the target of the fallback, to which the request then goes;
   * null if it cannot.
   */
  fallBack(
    reason: FallbackReason,
    outcome: "answered" | "refused",
  ): ForwardTarget | null | Promise<ForwardTarget | null> {
    if (this.#isTried) return null;
    this.#isTried = true;
    const { primary, createFallback } = this.#options;
    primary.compared = undefined;
    primary.settle(outcome);
    const call = createFallback(primary);
    try {
      const reserved = this.reserve?.(call);
      if (reserved === undefined) return this.#continue(reason, call);
      return reserved.then(
        () => this.#continue(reason, call),
        (error: unknown) => this.#refuse(error),
      );
    } catch (error) {
      return this.#refuse(error);
    }
  }

  #continue(reason: FallbackReason, call: ModelCall): ForwardTarget | null {
    const { exchange, spec, composeBody, primary } = this.#options;
    const isOver = exchange.sequence !== this.#sequence || exchange.aborted;
    const target = isOver ? null : (this.enter?.(spec.fallback.target) ?? null);
    if (target === null) {
      call.settle("refused");
      primary.fallback = "failed";
      return null;
    }
    exchange.replaceBody(composeBody(spec.fallback.model));
    call.heldBytes = primary.heldBytes;
    primary.heldBytes = 0;
    call.fallback = reason;
    this.isFallback = true;
    this.#call = call;
    exchange.userData.ai = call;
    return target;
  }

  // A limit or a budget: the primary's failure is the answer.
  #refuse(error: unknown): null {
    if (!(error instanceof PlatformError)) throw error;
    this.#options.primary.fallback = "failed";
    return null;
  }
}
