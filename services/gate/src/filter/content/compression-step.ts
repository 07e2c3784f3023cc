// The compression step: encodes responses of the upstream with a coding that the client accepts.
import type { ContentFilter, ResponseDraft } from "@platform/http1";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { RouteSpec } from "../../shared-state/index.ts";
import { CompressionRule } from "./compression-rule.ts";
import { Compressor } from "./compressor.ts";
import type { StepParts } from "../step-parts.ts";

const EVENT_STREAM = /^text\/event-stream\b/i;

/** Compresses responses of a route. */
export function createCompressionStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { compression } = spec.steps;
  return compression === undefined
    ? undefined
    : new CompressionStep(new CompressionRule(compression, parts));
}

class CompressionStep implements Step {
  readonly #rule: CompressionRule;

  constructor(rule: CompressionRule) {
    this.#rule = rule;
  }

  run(): boolean {
    return true;
  }

  filterResponse(exchange: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    const sizeBytes = draft.contentLength;
    const compression = this.#rule.apply(exchange.head.fields, draft);
    if (compression === undefined) return [];
    const isType = ([name, value]: readonly [string, string]): boolean =>
      name.toLowerCase() === "content-type" && EVENT_STREAM.test(value);
    const isStream = sizeBytes < 0 || draft.headers.some(isType);
    return [new Compressor({ ...compression, sizeBytes, isStream })];
  }
}
