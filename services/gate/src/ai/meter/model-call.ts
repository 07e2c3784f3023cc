// One request to a model: what it uses and costs.
import type { ExchangeAi } from "../../exchange/exchange.ts";
import { escapeNonAscii } from "../../access-log/access-line.ts";
import { formatUsd, OUTPUT_TOKENS_DEFAULT, type Price, toUsd } from "../price/price-table.ts";
import type { PiiSearch } from "../pii/entity.ts";
import type { Placeholders } from "../pii/placeholders.ts";
import type { AnswerCollector } from "../semantic/answer-collector.ts";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import { listAnswerTexts } from "../shape/read-answer.ts";
import { type AiRequest, readString } from "../shape/read-request.ts";
import { sumInput, type TokenUsage, UsageReports } from "../usage/token-usage.ts";
import { TextSample } from "../usage/text-sample.ts";

/** Tokens of an image, of which the request tells only the bytes. */
const IMAGE_TOKENS = 1_500;
/** No model reads more at once. */
const FILE_TOKENS_MAX = 1_000_000;
/** Of files whose usage nobody reports: between pages of text and pages of pictures. */
const FILE_BYTES_PER_TOKEN = 16;
/** The densest text that was measured, JSON, has 1.6 bytes per token. */
const BYTES_PER_TOKEN_MIN = 1.5;
const MODEL_CHARACTERS_MAX = 256;
const NO_USAGE: TokenUsage = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 };

const UNSETTLED = { usage: NO_USAGE, costPico: 0n, isEstimated: false };

/** Result of a request that has ended. */
export interface SettledCall {
  readonly usage: TokenUsage;
  readonly costPico: bigint;
  /** Additional cost of the fallback, had it answered instead of the primary. */
  readonly savedPico: bigint;
  readonly isEstimated: boolean;
}

/** Personal data of one request and its answer. */
export interface CallPii {
  readonly search: PiiSearch;
  readonly placeholders: Placeholders;
}

/** Options of {@link ModelCall}. */
export interface ModelCallOptions {
  readonly request: AiRequest;
  /** The gateway has asked for the usage at the end of a stream: the event with it is not for the client. */
  readonly hidesUsage: boolean;
  /** Undefined if the model has no price. */
  readonly price: Price | undefined;
  /** Replacing of personal data; undefined if the route does not replace any. */
  readonly pii: CallPii | undefined;
  /** The attempt at another model before this one. */
  readonly earlier?: ModelCall;
  /** The scanned body of the request; used by the constructor only. */
  readonly tree: JsonScanner;
  /** Called once, when the request has ended. */
  readonly onSettled: (call: ModelCall, settled: SettledCall) => void;
}

/** The state of one request from its body to the end of its answer. */
export class ModelCall implements ExchangeAi {
  readonly request: AiRequest;
  readonly hidesUsage: boolean;
  readonly pii: CallPii | undefined;
  /** Memory that the request holds, claimed from `BodyMemory`. */
  heldBytes = 0;
  readonly price: Price | undefined;
  readonly reports: UsageReports;
  /** Most that the request is expected to use. */
  readonly reserved: TokenUsage;
  readonly reservedPico: bigint;
  readonly #input = new TextSample();
  readonly #output = new TextSample();
  readonly #onSettled: ModelCallOptions["onSettled"];
  readonly #earlier: ModelCall | undefined;
  /** The request as it may go up, for stored answers; undefined on routes without them. */
  prompt: { readonly request: AiRequest; readonly tree: JsonScanner } | undefined;
  /** Collects the answer to store it. */
  collector: AnswerCollector | undefined;
  /** Undefined if stored answers were not asked. */
  cache: "hit" | "miss" | undefined;
  /** Score of the guard; undefined if the route has none. */
  risk: number | undefined;
  /** Price of the fallback, to which the answer of the primary is compared. */
  compared: Price | undefined;
  /** Why the fallback got the request, or that it failed, too; undefined if there was no reason for it. */
  fallback: "confidence" | "error" | "failed" | undefined;
  /** Called once, before `onSettled`, with the result: releases what was reserved for the request. */
  release: ((settled: SettledCall) => void) | undefined;
  #servedModel = "";
  #settled: SettledCall | undefined;

  constructor({ request, hidesUsage, pii, price, tree, earlier, onSettled }: ModelCallOptions) {
    this.request = request;
    this.#earlier = earlier;
    this.risk = earlier?.risk;
    this.pii = pii;
    this.hidesUsage = hidesUsage;
    this.price = price;
    this.reports = new UsageReports(request.shape);
    this.reserved = reserve(request, price);
    this.reservedPico = request.isCount ? 0n : (price?.cost(this.reserved) ?? 0n);
    this.#onSettled = onSettled;
    for (const { node } of request.texts)
      this.#input.add(tree.bytes, tree.start(node) + 1, tree.end(node) - 1);
  }

  get servedModel(): string {
    return this.#servedModel;
  }

  get settled(): SettledCall | undefined {
    return this.#settled;
  }

  get costText(): string {
    return formatUsd(this.#sumSettled().costPico);
  }

  /** Cost of earlier attempts and the reserved one of this, in pico-USD. */
  get expectedPico(): bigint {
    return this.reservedPico + (this.#earlier?.settled?.costPico ?? 0n);
  }

  /** Reads what an answer, or an event of its stream, says of the usage. */
  readAnswer(tree: JsonScanner): void {
    if (this.request.isCount || tree.kind(0) !== JsonKind.Object) return;
    this.reports.add(tree);
    if (this.#servedModel === "") this.#servedModel = findModel(tree);
    for (const { node } of listAnswerTexts(this.request.shape, tree))
      this.#output.add(tree.bytes, tree.start(node) + 1, tree.end(node) - 1);
  }

  /** Counts `data[start, end)` as a text of the output. */
  noteText(data: Buffer, start: number, end: number): void {
    this.#output.add(data, start, end);
  }

  /** Counts content that cannot be read as output. */
  noteUnread(bytes: Buffer): void {
    this.#output.add(bytes, 0, bytes.length);
  }

  /** Cost of earlier attempts and of what has been reported so far, or is estimated. */
  estimateCost(): bigint {
    const { usage } = this.#measure();
    return (this.price?.cost(usage) ?? 0n) + (this.#earlier?.settled?.costPico ?? 0n);
  }

  /**
   * The request has ended. With `answered` figures that were not reported are estimated; with `refused` the provider has
   * done nothing for it, so that only what it has reported counts.
   */
  settle(outcome: "answered" | "refused"): SettledCall {
    if (this.#settled !== undefined) return this.#settled;
    const isUsed = outcome === "answered" || this.reports.reported !== undefined;
    const counts = isUsed && !this.request.isCount;
    const { usage, isEstimated } = counts
      ? this.#measure()
      : { usage: NO_USAGE, isEstimated: false };
    const costPico = counts ? (this.price?.cost(usage) ?? 0n) : 0n;
    const savedPico = counts && this.compared ? this.compared.cost(usage) - costPico : 0n;
    this.#settled = { usage, costPico, savedPico, isEstimated };
    this.release?.(this.#settled);
    this.#onSettled(this, this.#settled);
    return this.#settled;
  }

  /** The request is answered from stored answers, which once cost `savedPico`. */
  settleHit(servedModel: string, savedPico: bigint): void {
    this.cache = "hit";
    this.#servedModel = servedModel;
    this.#settled = { usage: NO_USAGE, costPico: 0n, savedPico, isEstimated: false };
    this.release?.(this.#settled);
    this.#onSettled(this, this.#settled);
  }

  describe(): string {
    const { usage, costPico, isEstimated } = this.#sumSettled();
    const line = {
      shape: this.request.shape,
      model: this.request.model,
      served_model: this.#servedModel,
      tokens_in: sumInput(usage),
      tokens_out: usage.output,
      cached_tokens: usage.cachedInput,
      cost_usd: toUsd(costPico),
      priced: this.price !== undefined,
      estimated: isEstimated,
      ...(this.risk === undefined ? {} : { risk: Math.round(this.risk * 100) / 100 }),
      ...(this.pii === undefined ? {} : { pii: this.pii.placeholders.replaced }),
      ...(this.cache === undefined ? {} : { cache: this.cache }),
      ...(this.fallback === undefined ? {} : { fallback: this.fallback }),
    };
    return escapeNonAscii(JSON.stringify(line));
  }

  listAttributes(): readonly (readonly [name: string, value: string | number])[] {
    const { shape, model } = this.request;
    const { usage } = this.#sumSettled();
    return [
      ["gen_ai.operation.name", OPERATIONS[shape]],
      ["gen_ai.request.model", model],
      ["gen_ai.response.model", this.#servedModel],
      ["gen_ai.usage.input_tokens", sumInput(usage)],
      ["gen_ai.usage.output_tokens", usage.output],
      ["platform.ai.cost_usd", this.costText],
      ...(this.cache === undefined ? [] : [["platform.ai.cache", this.cache] as const]),
      ...(this.fallback === undefined ? [] : [["platform.ai.fallback", this.fallback] as const]),
    ];
  }

  // Both attempts are paid.
  #sumSettled(): Pick<SettledCall, "usage" | "costPico" | "isEstimated"> {
    const own = this.#settled ?? UNSETTLED;
    const before = this.#earlier?.settled;
    if (before === undefined) return own;
    const { input, cachedInput, cacheWrite, output } = before.usage;
    return {
      usage: {
        input: own.usage.input + input,
        cachedInput: own.usage.cachedInput + cachedInput,
        cacheWrite: own.usage.cacheWrite + cacheWrite,
        output: own.usage.output + output,
      },
      costPico: own.costPico + before.costPico,
      isEstimated: own.isEstimated || before.isEstimated,
    };
  }

  #measure(): { usage: TokenUsage; isEstimated: boolean } {
    const { reported } = this.reports;
    if (reported !== undefined) return { usage: reported, isEstimated: false };
    const media = countMedia(this.request, FILE_BYTES_PER_TOKEN);
    const input = this.#input.estimateTokens() + media;
    const usage = this.reports.complete(input, this.#output.estimateTokens());
    return { usage, isEstimated: true };
  }
}

// Names of the OpenTelemetry conventions for generative AI.
const OPERATIONS: Readonly<Record<AiRequest["shape"], string>> = {
  chat: "chat",
  completions: "text_completion",
  embeddings: "embeddings",
  responses: "chat",
  messages: "chat",
};

function reserve(request: AiRequest, price: Price | undefined): TokenUsage {
  const { shape, textBytes, outputTokensMax, choices } = request;
  const media = countMedia(request, BYTES_PER_TOKEN_MIN);
  const input = Math.ceil(textBytes / BYTES_PER_TOKEN_MIN) + media;
  const bound = outputTokensMax ?? price?.outputTokensMax ?? OUTPUT_TOKENS_DEFAULT;
  const output = shape === "embeddings" || request.isCount ? 0 : bound * choices;
  return { input, cachedInput: 0, cacheWrite: 0, output };
}

/** Tokens of images and files: a file in the request counts by its size, at least as an image. */
function countMedia({ images, fileBytes }: AiRequest, bytesPerToken: number): number {
  let tokens = images * IMAGE_TOKENS;
  for (const bytes of fileBytes) {
    const most = Math.min(Math.ceil(bytes / bytesPerToken), FILE_TOKENS_MAX);
    tokens += Math.max(0, most - IMAGE_TOKENS);
  }
  return tokens;
}

function findModel(tree: JsonScanner): string {
  for (const owner of [0, tree.find(0, "message"), tree.find(0, "response")]) {
    const model = readString(tree, owner, "model");
    if (model !== "") return model.slice(0, MODEL_CHARACTERS_MAX);
  }
  return "";
}
