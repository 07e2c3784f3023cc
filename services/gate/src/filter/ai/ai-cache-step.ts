// The step of AI routes that answers questions whose answer is stored.
import { createHash } from "node:crypto";
import type { AiParts } from "../../ai/ai-parts.ts";
import { ANONYMOUS_TENANT } from "../../ai/ledger/accounting.ts";
import { ModelCall } from "../../ai/meter/model-call.ts";
import { encodePlain } from "../../ai/pii/mask-tree.ts";
import { AnswerCollector } from "../../ai/semantic/answer-collector.ts";
import { type Question, readQuestion } from "../../ai/semantic/question.ts";
import type { FoundAnswer } from "../../ai/semantic/semantic-cache.ts";
import {
  composeDocument,
  composeStream,
  type StoredShape,
} from "../../ai/semantic/stored-answer.ts";
import { answerWith, TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import type { CompiledRoute, GateExchange, Step } from "../../exchange/exchange.ts";
import type { AnswerCacheSpec, RouteSpec } from "../../shared-state/index.ts";
import { readDirectives, readScope } from "../content/cache-request.ts";
import type { StepParts } from "../step-parts.ts";
import { findTenant } from "./find-tenant.ts";

/** Fields with which clients identify themselves at the provider. */
const CREDENTIAL_FIELDS = ["authorization", "x-api-key", "api-key"];
/** Fields that change what the provider answers. */
const PROVIDER_FIELDS = [
  "anthropic-version",
  "anthropic-beta",
  "openai-organization",
  "openai-project",
  "openai-beta",
  "accept-language",
];

/** Answers from the stored answers of an AI route. */
export function createAiCacheStep({ steps }: RouteSpec, parts: StepParts): Step | undefined {
  const cache = steps.ai?.cache;
  return cache && new AiCacheStep(cache, parts.ai);
}

class AiCacheStep implements Step {
  readonly #spec: AnswerCacheSpec;
  readonly #parts: AiParts;

  constructor(spec: AnswerCacheSpec, parts: AiParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  run(exchange: GateExchange, route: CompiledRoute): boolean | Promise<boolean> {
    const { ai: call } = exchange.userData;
    if (!(call instanceof ModelCall) || call.prompt === undefined) return true;
    const { request, tree } = call.prompt;
    call.prompt = undefined;
    const directives = readDirectives(exchange);
    if (directives.has("no-store")) return true;
    const question = readQuestion(request, tree, listContext(exchange, call));
    if (question === undefined) return true;
    const { semantic } = this.#parts;
    if (!directives.has("no-cache")) {
      const found = semantic.find(exchange, question);
      if (found !== undefined) return this.#answer(exchange, route, call, found);
      if (semantic.hasVectors) return this.#findSimilar(exchange, route, call, question);
    }
    this.#collect(exchange, call, question);
    return true;
  }

  async #findSimilar(
    exchange: GateExchange,
    route: CompiledRoute,
    call: ModelCall,
    question: Question,
  ): Promise<boolean> {
    const { sequence } = exchange;
    const { threshold } = this.#spec;
    const found = await this.#parts.semantic.findSimilar(exchange, question, threshold);
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    if (found !== undefined) return this.#answer(exchange, route, call, found);
    this.#collect(exchange, call, question);
    return true;
  }

  // A hit costs nothing, and is not limited.
  #answer(
    exchange: GateExchange,
    route: CompiledRoute,
    call: ModelCall,
    { answer, similarity }: FoundAnswer,
  ): false {
    const { accounting, readTimeMs } = this.#parts;
    const tenant = findTenant(exchange) ?? ANONYMOUS_TENANT;
    accounting.recordHit({ call, tenant, routeLabel: route.label });
    call.settleHit(answer.model, BigInt(answer.pico));
    const { pii, request } = call;
    const text =
      pii?.placeholders.isReversible === true
        ? pii.placeholders.restore(answer.text, encodePlain)
        : answer.text;
    const nowMs = readTimeMs();
    const filled = { ...answer, text };
    const [type, body] = request.isStream
      ? ["text/event-stream", composeStream(filled, nowMs, request.wantsUsage)]
      : ["application/json", composeDocument(filled, nowMs)];
    answerWith(exchange, {
      status: 200,
      headers: [
        ["Content-Type", type],
        ["X-Cache", "HIT"],
        ["X-Cache-Similarity", similarity.toFixed(2)],
        [TOKEN_COST_FIELD, "0"],
      ],
      body,
    });
    return false;
  }

  #collect(exchange: GateExchange, call: ModelCall, question: Question): void {
    const { semantic } = this.#parts;
    const place = semantic.prepare(exchange, question);
    if (place === undefined) return;
    const shape = call.request.shape as StoredShape;
    call.cache = "miss";
    call.collector = new AnswerCollector(shape, (text) => {
      const { settled, servedModel, request } = call;
      if (settled === undefined) return;
      const { usage, costPico } = settled;
      const model = servedModel === "" ? request.model : servedModel;
      const answer = { shape, model, text, usage, pico: costPico.toString() };
      semantic.store(place, question, answer, this.#spec.ttlMs);
    });
    exchange.userData.responseFields.add("X-Cache", "MISS");
  }
}

/** Everything but the body that decides about an answer, and for whom it is. */
function listContext(exchange: GateExchange, call: ModelCall): string[] {
  const { head } = exchange;
  const tenant = findTenant(exchange);
  const scope = tenant === undefined ? `caller ${readScope(exchange)}` : `tenant ${tenant}`;
  const fields = [
    // Callers that the gateway does not know are told apart by what they send to the provider.
    ...(tenant === undefined ? CREDENTIAL_FIELDS : []),
    ...PROVIDER_FIELDS,
  ].map((name) => {
    const value = head.fields.find(name) ?? "";
    return CREDENTIAL_FIELDS.includes(name) ? digest(value) : value;
  });
  const pii = call.pii === undefined ? "" : "redacted";
  return [scope, pii, exchange.userData.guests?.cacheScope ?? "", ...fields];
}

function digest(value: string): string {
  return value === "" ? "" : createHash("sha256").update(value).digest("base64url");
}
