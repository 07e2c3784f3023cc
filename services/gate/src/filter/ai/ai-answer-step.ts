// The step of AI routes that meters answers of models.
import { Known, type ContentFilter, type ResponseDraft } from "@platform/http1";
import { StreamDecoder, takeCoding } from "../../ai/meter/answer-coding.ts";
import { ModelCall } from "../../ai/meter/model-call.ts";
import { PlainAnswer } from "../../ai/meter/plain-answer.ts";
import { StreamAnswer } from "../../ai/meter/stream-answer.ts";
import { formatUsd } from "../../ai/price/price-table.ts";
import { findErrorForm, TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { AiSpec, RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i;

/** Meters the answers of an AI route. */
export function createAiAnswerStep({ steps }: RouteSpec, parts: StepParts): Step | undefined {
  return steps.ai === undefined ? undefined : new AiAnswerStep(steps.ai, parts);
}

class AiAnswerStep implements Step {
  readonly #spec: AiSpec;
  readonly #parts: StepParts;

  constructor(spec: AiSpec, parts: StepParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  run(): boolean {
    return true;
  }

  filterResponse(exchange: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    draft.headers = draft.headers.filter(([name]) => name.toLowerCase() !== COST_FIELD);
    const call = exchange.userData.ai;
    if (!(call instanceof ModelCall)) {
      draft.headers.push([TOKEN_COST_FIELD, "0"]);
      return [];
    }
    if (!draft.hasContent) {
      draft.headers.push([TOKEN_COST_FIELD, formatUsd(call.settle("refused").costPico)]);
      return [];
    }
    const isStream = draft.headers.some(
      ([name, value]) => name.toLowerCase() === "content-type" && EVENT_STREAM.test(value),
    );
    const coding = takeCoding(draft);
    // Personal data is replaced by placeholders of another length.
    if (call.pii !== undefined) draft.contentLength = -1;
    const { memory } = this.#parts.ai;
    // Events in an unknown coding cannot be read: they pass in one piece.
    if (!isStream || coding === "unknown")
      return [new PlainAnswer({ exchange, call, draft, memory, coding })];
    const answer = this.#openStream(exchange, call, draft);
    return coding === "identity" ? [answer] : [new StreamDecoder(coding), answer];
  }

  #openStream(exchange: GateExchange, call: ModelCall, draft: ResponseDraft): StreamAnswer {
    const { sequence, userData: state } = exchange;
    const te = exchange.head.fields.get(Known.Te) ?? "";
    const sendsTrailers = te
      .toLowerCase()
      .split(/[\s,;]+/)
      .includes("trailers");
    draft.headers.push([TOKEN_COST_FIELD, formatUsd(call.reservedPico)]);
    if (sendsTrailers) draft.headers.push(["Trailer", TOKEN_COST_FIELD]);
    // A comment with the cost is added.
    draft.contentLength = -1;
    return new StreamAnswer({
      call,
      sendsTrailers,
      errorForm: findErrorForm(exchange) ?? "openai",
      traceId: state.ids.traceId,
      durationMsMax: this.#spec.streamMsMax,
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
