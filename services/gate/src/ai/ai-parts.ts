// Parts of a worker that its AI routes share.
import type { AiFigures, ModelPrices } from "../shared-state/index.ts";
import { BodyMemory } from "./body-memory.ts";
import { Accounting, type AccountingOptions } from "./ledger/accounting.ts";
import type { LedgerWriter } from "./ledger/ledger-writer.ts";
import { PromptGuard } from "./guard/prompt-guard.ts";
import { FigureSums } from "./meter/figure-sums.ts";
import { PriceTable } from "./price/price-table.ts";
import type { SemanticCache } from "./semantic/semantic-cache.ts";

/** Options of {@link AiParts}. */
export interface AiPartsOptions extends Omit<AccountingOptions, "writer"> {
  /** Sends figures to the control plane. */
  readonly report: (figures: readonly AiFigures[]) => void;
  readonly ledger: LedgerWriter;
  readonly semantic: SemanticCache;
}

/** Memory, prices and figures of all AI routes of a worker. */
export class AiParts {
  readonly memory = new BodyMemory();
  readonly figures: FigureSums;
  readonly guard = new PromptGuard();
  readonly accounting: Accounting;
  readonly semantic: SemanticCache;
  /** Milliseconds since 1970. */
  readonly readTimeMs: () => number;
  readonly #ledger: LedgerWriter;
  prices = new PriceTable({});
  #prices: ModelPrices = {};

  constructor({ report, ledger, semantic, ...options }: AiPartsOptions) {
    this.figures = new FigureSums(report);
    this.#ledger = ledger;
    this.semantic = semantic;
    this.readTimeMs = options.readTimeMs;
    this.accounting = new Accounting({ ...options, writer: ledger });
  }

  /** Uses these prices for the requests that follow. */
  setPrices(prices: ModelPrices): void {
    if (prices === this.#prices) return;
    this.#prices = prices;
    this.prices = new PriceTable(prices);
  }

  /** Reports the last figures and closes the ledger. */
  close(): void {
    this.figures.report();
    this.accounting.close();
    this.#ledger.close();
  }
}
