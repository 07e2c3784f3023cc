// A filter whose response may be replaced by another one: the steps behind it see the response only when it passes.
import type { ContentFilter, ContentOutput } from "@platform/http1";
import type { DeferringFilter } from "../../exchange/exchange.ts";

/** Passes everything to another filter, and defers the choice of the filters behind it until that one writes or ends. */
export class DeferredFilter implements DeferringFilter {
  readonly #filter: ContentFilter;
  #choose: (() => readonly ContentFilter[] | undefined) | undefined;
  #outer: ContentOutput | undefined;
  #output: ContentOutput | undefined;
  #isReplaced = false;
  readonly onTruncated?: (output: ContentOutput) => boolean;

  constructor(filter: ContentFilter) {
    this.#filter = filter;
    if (filter.onTruncated !== undefined)
      this.onTruncated = (output) => filter.onTruncated!(this.#wrap(output));
  }

  get holdsHead(): boolean {
    return this.#choose !== undefined || this.#filter.holdsHead === true;
  }

  defer(choose: () => readonly ContentFilter[] | undefined): void {
    this.#choose = choose;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    this.#filter.onBytes(bytes, this.#wrap(output));
  }

  onEnd(output: ContentOutput): void {
    this.#filter.onEnd(this.#wrap(output));
  }

  onDrain(output: ContentOutput): void {
    this.#filter.onDrain?.(this.#wrap(output));
  }

  onAbort(): void {
    this.#filter.onAbort?.();
  }

  #wrap(output: ContentOutput): ContentOutput {
    if (this.#output !== undefined && this.#outer === output) return this.#output;
    this.#outer = output;
    this.#output = {
      write: (bytes) => !this.#opens(output) || output.write(bytes),
      end: (trailers) => {
        if (this.#opens(output)) output.end(trailers);
      },
      pause: () => output.pause(),
      resume: () => output.resume(),
      append: (filters) => output.append(filters),
      fail: (error) => output.fail(error),
      retry: (target) => output.retry(target),
    };
    return this.#output;
  }

  // False if a step behind has answered instead.
  #opens(output: ContentOutput): boolean {
    const choose = this.#choose;
    this.#choose = undefined;
    if (choose === undefined) return !this.#isReplaced;
    const filters = choose();
    this.#isReplaced = filters === undefined;
    if (filters !== undefined) output.append(filters);
    return filters !== undefined;
  }
}
