// Sums of settled requests by route and model, reported to the control plane several times a second.
import type { AiFigures } from "../../shared-state/index.ts";
import { sumInput } from "../usage/token-usage.ts";
import type { ModelCall, SettledCall } from "./model-call.ts";

const REPORT_MS = 250;
/** Clients choose the names of models: the control plane bounds those that it keeps. */
const SUMS_MAX = 1_000;
const OTHER = "other";

/** The sums of one worker since its last report. */
export class FigureSums {
  readonly #report: (figures: readonly AiFigures[]) => void;
  readonly #sums = new Map<string, AiFigures>();
  #reporting: NodeJS.Timeout | undefined;

  constructor(report: (figures: readonly AiFigures[]) => void) {
    this.#report = report;
  }

  /** Adds a request that has ended. */
  add(route: string, call: ModelCall, { usage, costPico, isEstimated }: SettledCall): void {
    const sums = this.#find(route, call.request.model);
    sums.requests++;
    sums.inputTokens += sumInput(usage);
    sums.outputTokens += usage.output;
    sums.cachedTokens += usage.cachedInput;
    sums.costPico += costPico;
    if (isEstimated) sums.estimated++;
    if (call.cache === "hit") sums.cacheHits++;
    if (call.price === undefined && !call.request.isCount) sums.unpriced++;
    sums.faultyReports += call.reports.faults;
    this.#reporting ??= setTimeout(() => this.report(), REPORT_MS);
  }

  /** Reports all sums now. */
  report(): void {
    clearTimeout(this.#reporting);
    this.#reporting = undefined;
    if (this.#sums.size === 0) return;
    const figures = [...this.#sums.values()];
    this.#sums.clear();
    this.#report(figures);
  }

  #find(route: string, model: string): AiFigures {
    const name = this.#sums.size < SUMS_MAX ? model : OTHER;
    const key = `${route}\n${name}`;
    let sums = this.#sums.get(key);
    if (sums === undefined) {
      sums = {
        route,
        model: name,
        requests: 0,
        inputTokens: 0,
        outputTokens: 0,
        cachedTokens: 0,
        costPico: 0n,
        cacheHits: 0,
        estimated: 0,
        unpriced: 0,
        faultyReports: 0,
      };
      this.#sums.set(key, sums);
    }
    return sums;
  }
}
