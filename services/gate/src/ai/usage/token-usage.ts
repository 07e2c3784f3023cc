// Tokens that providers report: where they stand in answers, and which of several reports counts.
import type { AiShape } from "../shape/ai-shape.ts";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import { listEntries } from "../shape/read-answer.ts";

/** Tokens of one request. */
export interface TokenUsage {
  /** Input that was neither read from nor written to the provider's cache. */
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly output: number;
}

/** Reports above this are taken for faults. */
const TOKENS_MAX = 100_000_000;

/** Names of the figures in a report of OpenAI's and Anthropic's shapes. */
const INPUT_NAMES = ["prompt_tokens", "input_tokens"];
const OUTPUT_NAMES = ["completion_tokens", "output_tokens"];
const DETAIL_NAMES = ["prompt_tokens_details", "input_tokens_details"];

/** Figures of a report; -1 for those that it does not have. */
interface Figures {
  input: number;
  cached: number;
  written: number;
  output: number;
}

/**
 * The usage of one answer. Of several reports the last one counts, for each figure that it has: streams report the output so
 * far, and some providers repeat the report.
 */
export class UsageReports {
  readonly #shape: AiShape;
  readonly #figures: Figures = { input: -1, cached: -1, written: -1, output: -1 };
  /** Reports, or figures of them, that cannot be true. */
  faults = 0;

  constructor(shape: AiShape) {
    this.#shape = shape;
  }

  /** Adds the reports in an answer or in an event of a stream. */
  add(tree: JsonScanner): void {
    for (const owner of [0, tree.find(0, "message"), tree.find(0, "response")])
      this.#read(tree, tree.find(owner, "usage"));
    if (this.#shape !== "chat" && this.#shape !== "completions") return;
    for (const choice of listEntries(tree, 0, "choices"))
      this.#read(tree, tree.find(choice, "usage"));
  }

  /** The reported usage; undefined unless input and, except for embeddings, output were reported. */
  get reported(): TokenUsage | undefined {
    const { input, output } = this.#figures;
    const needsOutput = this.#shape !== "embeddings";
    if (input === -1 || (needsOutput && output === -1)) return undefined;
    return this.#compose(input, Math.max(0, output));
  }

  /** The usage with estimates in place of figures that were not reported. */
  complete(inputEstimate: number, outputEstimate: number): TokenUsage {
    const { input, output } = this.#figures;
    return this.#compose(
      input === -1 ? inputEstimate : input,
      output === -1 ? outputEstimate : output,
    );
  }

  #compose(input: number, output: number): TokenUsage {
    const cached = Math.max(0, this.#figures.cached);
    const cacheWrite = Math.max(0, this.#figures.written);
    // Anthropic counts them outside of the input, OpenAI inside.
    if (this.#shape === "messages") return { input, cachedInput: cached, cacheWrite, output };
    const cachedInput = Math.min(cached, input);
    return { input: input - cachedInput, cachedInput, cacheWrite: 0, output };
  }

  #read(tree: JsonScanner, usage: number): void {
    if (usage === -1 || tree.kind(usage) !== JsonKind.Object) return;
    const figures = this.#figures;
    figures.input = this.#pick(tree, usage, INPUT_NAMES, figures.input);
    figures.output = this.#pick(tree, usage, OUTPUT_NAMES, figures.output);
    if (this.#shape === "messages") {
      figures.cached = this.#pick(tree, usage, ["cache_read_input_tokens"], figures.cached);
      figures.written = this.#pick(tree, usage, ["cache_creation_input_tokens"], figures.written);
      return;
    }
    for (const name of DETAIL_NAMES) {
      const details = tree.find(usage, name);
      figures.cached = this.#pick(tree, details, ["cached_tokens"], figures.cached);
    }
  }

  #pick(tree: JsonScanner, node: number, names: readonly string[], known: number): number {
    const member = names.map((name) => tree.find(node, name)).find((found) => found !== -1);
    if (member === undefined || tree.kind(member) === JsonKind.Null) return known;
    const value = tree.kind(member) === JsonKind.Number ? tree.number(member) : Number.NaN;
    if (Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX) return value;
    this.faults++;
    return known;
  }
}

/** All tokens of a usage. */
export function sumTokens({ input, cachedInput, cacheWrite, output }: TokenUsage): number {
  return input + cachedInput + cacheWrite + output;
}

/** All tokens of the input. */
export function sumInput({ input, cachedInput, cacheWrite }: TokenUsage): number {
  return input + cachedInput + cacheWrite;
}
