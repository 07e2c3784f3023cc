// Prices of models, and what requests cost: whole pico-USD, without floating-point sums.
import type { ModelPrices, ModelPriceSpec } from "../../shared-state/index.ts";
import type { TokenUsage } from "../usage/token-usage.ts";

/** Tokens of an answer for which neither the request nor its price has a bound. */
export const OUTPUT_TOKENS_DEFAULT = 4_096;

const PICO_PER_USD = 1_000_000_000_000n;
/** USD per million tokens are this many pico-USD per token. */
const PICO_PER_TOKEN = 1_000_000;
const DECIMALS = 12;

interface Rates {
  readonly input: bigint;
  readonly output: bigint;
  readonly cached: bigint;
  readonly written: bigint;
  readonly request: bigint;
  readonly outputTokensMax: number;
}

/** Price of one request. */
export class Price {
  readonly #rates: Rates;

  constructor(price: ModelPriceSpec) {
    const rate = (usd: number): bigint => BigInt(Math.round(usd * PICO_PER_TOKEN));
    this.#rates = {
      input: rate(price.input),
      output: rate(price.output),
      cached: rate(price.cached_input ?? price.input),
      written: rate(price.cache_write ?? price.input),
      request: BigInt(Math.round((price.request ?? 0) * Number(PICO_PER_USD))),
      outputTokensMax: price.max_output ?? OUTPUT_TOKENS_DEFAULT,
    };
  }

  /** Bound of an answer to a request without one. */
  get outputTokensMax(): number {
    return this.#rates.outputTokensMax;
  }

  /** Cost in pico-USD. */
  cost({ input, cachedInput, cacheWrite, output }: TokenUsage): bigint {
    const { input: fresh, cached, written, output: answered, request } = this.#rates;
    return (
      BigInt(input) * fresh +
      BigInt(cachedInput) * cached +
      BigInt(cacheWrite) * written +
      BigInt(output) * answered +
      request
    );
  }
}

/** The prices of all models. */
export class PriceTable {
  readonly #exact = new Map<string, Price>();
  /** Starts of names, the longest first. */
  readonly #starts: [start: string, price: Price][] = [];

  constructor(prices: ModelPrices) {
    for (const [name, price] of Object.entries(prices)) {
      if (name.endsWith("*")) this.#starts.push([name.slice(0, -1), new Price(price)]);
      else this.#exact.set(name, new Price(price));
    }
    this.#starts.sort(([one], [other]) => other.length - one.length);
  }

  /** The price of a model: that of its name, or of the longest start of it; undefined if it has none. */
  find(model: string): Price | undefined {
    return this.#exact.get(model) ?? this.#starts.find(([start]) => model.startsWith(start))?.[1];
  }
}

/** Pico-USD as a decimal number of USD with at most 12 places, without an exponent. */
export function formatUsd(pico: bigint): string {
  const sign = pico < 0n ? "-" : "";
  const digits = (pico < 0n ? -pico : pico).toString().padStart(DECIMALS + 1, "0");
  const places = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -DECIMALS)}${places === "" ? "" : `.${places}`}`;
}

/** USD as pico-USD, rounded. */
export function readUsd(usd: number): bigint {
  // Two steps: the product of a large sum is not an exact integer.
  const whole = Math.trunc(usd);
  return BigInt(whole) * PICO_PER_USD + BigInt(Math.round((usd - whole) * Number(PICO_PER_USD)));
}

/** Pico-USD as a number of USD, for JSON. */
export function toUsd(pico: bigint): number {
  return Number(formatUsd(pico));
}
