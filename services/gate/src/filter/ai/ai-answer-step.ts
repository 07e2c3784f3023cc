// The step of AI routes that meters answers of models.
import {
  Known,
  type ContentFilter,
  type ContentOutput,
  type ForwardTarget,
  type ResponseDraft,
} from "@platform/http1";
import { StreamDecoder, takeCoding } from "../../ai/meter/answer-coding.ts";
import { ModelCall } from "../../ai/meter/model-call.ts";
import { PlainAnswer, type PlainAnswerOptions } from "../../ai/meter/plain-answer.ts";
import { StreamAnswer, type StreamAnswerOptions } from "../../ai/meter/stream-answer.ts";
import { formatUsd } from "../../ai/price/price-table.ts";
import { DeferredFilter } from "../../ai/route/deferred-filter.ts";
import { FallbackFilter } from "../../ai/route/fallback-filter.ts";
import { ModelRoute } from "../../ai/route/model-route.ts";
import { JsonScanner } from "../../ai/shape/json-scan.ts";
import { findErrorForm, TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { AiSpec, RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i;

/** Meters the answers of an AI route. */
export function createAiAnswerStep({ steps }: RouteSpec, parts: StepParts): Step | undefined {
  return steps.ai === undefined ? undefined : new AiAnswerStep(steps.ai, parts);
}

/** An answer that is being metered. */
interface MeteredAnswer {
  readonly exchange: GateExchange;
  readonly call: ModelCall;
  readonly draft: ResponseDraft;
  readonly fallBack?: StreamAnswerOptions["fallBack"];
  readonly decide?: PlainAnswerOptions["decide"];
}

class AiAnswerStep implements Step {
  readonly #spec: AiSpec;
  readonly #parts: StepParts;
  readonly #scanner = new JsonScanner();

  constructor(spec: AiSpec, parts: StepParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  run(): boolean {
    return true;
  }

  filterResponse(exchange: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    draft.headers = draft.headers.filter(([name]) => name.toLowerCase() !== COST_FIELD);
    const { ai: call, models } = exchange.userData;
    if (!(call instanceof ModelCall)) {
      draft.headers.push([TOKEN_COST_FIELD, "0"]);
      return [];
    }
    if (!(models instanceof ModelRoute)) return this.#meter({ exchange, call, draft });
    if (models.isFallback && models.isFailure(draft.status) && models.answerKept("refused"))
      return [];
    models.mark(draft);
    return models.mayFallBack
      ? this.#meterPrimary({ exchange, call, draft }, models)
      : this.#meter({ exchange, call, draft });
  }

  answerFailure({ userData: { models } }: GateExchange): boolean {
    return models instanceof ModelRoute && models.answerKept("answered");
  }

  // Until something has been sent, the fallback can answer instead.
  #meterPrimary(answer: MeteredAnswer, models: ModelRoute): readonly ContentFilter[] {
    const { draft } = answer;
    const isFailed = models.isFailure(draft.status);
    const isUnsure = models.isUnsure(draft);
    if (isFailed || (isUnsure && isEventStream(draft))) {
      const reason = isFailed ? "error" : "confidence";
      const outcome = isFailed ? "refused" : "answered";
      const held = new FallbackFilter({
        fallBack: () => models.fallBack(reason, outcome),
        passOn: () => {
          models.mark(draft);
          return this.#meter(answer);
        },
      });
      return [new DeferredFilter(held)];
    }
    // It is the answer of neither model.
    if (isUnsure) answer.call.collector = undefined;
    const headers = [...draft.headers];
    const filters = this.#meter({
      ...answer,
      fallBack: () => models.fallBack("error", "answered"),
      ...(isUnsure
        ? {
            decide: (content, output, send) =>
              replaceUnsure(models, { draft, headers, content, output, send }),
          }
        : {}),
    });
    return filters.map((filter, index) =>
      index === filters.length - 1 ? new DeferredFilter(filter) : filter,
    );
  }

  #meter({ exchange, call, draft, fallBack, decide }: MeteredAnswer): readonly ContentFilter[] {
    if (!draft.hasContent) {
      call.settle("refused");
      draft.headers.push([TOKEN_COST_FIELD, call.costText]);
      return [];
    }
    const isStream = isEventStream(draft);
    const coding = takeCoding(draft);
    // Personal data is replaced by placeholders of another length.
    if (call.pii !== undefined) draft.contentLength = -1;
    const { memory } = this.#parts.ai;
    // Events in an unknown coding cannot be read: they pass in one piece.
    if (!isStream || coding === "unknown")
      return [
        new PlainAnswer({ exchange, call, draft, memory, coding, ...(decide ? { decide } : {}) }),
      ];
    const answer = this.#openStream({ exchange, call, draft, fallBack });
    return coding === "identity" ? [answer] : [new StreamDecoder(coding), answer];
  }

  #openStream({ exchange, call, draft, fallBack }: MeteredAnswer): StreamAnswer {
    const { sequence, userData: state } = exchange;
    const te = exchange.head.fields.get(Known.Te) ?? "";
    const sendsTrailers = te
      .toLowerCase()
      .split(/[\s,;]+/)
      .includes("trailers");
    draft.headers.push([TOKEN_COST_FIELD, formatUsd(call.expectedPico)]);
    if (sendsTrailers) draft.headers.push(["Trailer", TOKEN_COST_FIELD]);
    // A comment with the cost is added.
    draft.contentLength = -1;
    return new StreamAnswer({
      call,
      scanner: this.#scanner,
      sendsTrailers,
      errorForm: findErrorForm(exchange) ?? "openai",
      traceId: state.ids.traceId,
      durationMsMax: this.#spec.streamMsMax,
      fallBack,
      onFault: ({ code, detail }) => {
        state.code = code;
        state.detail = detail;
      },
      destroy: () => {
        if (exchange.sequence === sequence) exchange.destroy();
      },
    });
  }
}

const COST_FIELD = TOKEN_COST_FIELD.toLowerCase();

function isEventStream({ headers }: ResponseDraft): boolean {
  return headers.some(
    ([name, value]) => name.toLowerCase() === "content-type" && EVENT_STREAM.test(value),
  );
}

/** A metered answer of the primary. */
interface UnsureAnswer {
  readonly draft: ResponseDraft;
  /** Fields of the answer without those of further steps. */
  readonly headers: ResponseDraft["headers"];
  readonly content: Buffer;
  readonly output: ContentOutput;
  /** Passes the answer on. */
  readonly send: () => void;
}

/** Replaces an answer of low confidence by that of the fallback, and keeps it in case the fallback fails. */
function replaceUnsure(models: ModelRoute, answer: UnsureAnswer): void {
  const { draft, headers, content, output, send } = answer;
  models.keep(draft, headers, content);
  const proceed = (target: ForwardTarget | null): void => {
    if (target === null) {
      models.mark(draft);
      send();
    } else if (!output.retry(target))
      output.fail(new Error("The answer can no longer be replaced"));
  };
  const target = models.fallBack("confidence", "answered");
  if (target instanceof Promise) target.then(proceed, (error: unknown) => output.fail(error));
  else proceed(target);
}
