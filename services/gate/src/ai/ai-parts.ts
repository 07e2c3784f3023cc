// Parts of a worker that its AI routes share.
import type { AiFigures, ModelPrices } from "../shared-state/index.ts";
import { BodyMemory } from "./body-memory.ts";
import { FigureSums } from "./meter/figure-sums.ts";
import { PriceTable } from "./price/price-table.ts";

/** Memory, prices and figures of all AI routes of a worker. */
export class AiParts {
  readonly memory = new BodyMemory();
  readonly figures: FigureSums;
  prices = new PriceTable({});
  #prices: ModelPrices = {};

  /** `report` sends figures to the control plane. */
  constructor(report: (figures: readonly AiFigures[]) => void) {
    this.figures = new FigureSums(report);
  }

  /** Uses these prices for the requests that follow. */
  setPrices(prices: ModelPrices): void {
    if (prices === this.#prices) return;
    this.#prices = prices;
    this.prices = new PriceTable(prices);
  }
}
