// Holds a response that should not reach the client, until it is certain that another model can answer.
import type { ContentFilter, ContentOutput, ForwardTarget } from "@platform/http1";

/** Options of {@link FallbackFilter}. */
export interface FallbackFilterOptions {
  /** Asks for the other target; null if this response has to do. */
  readonly fallBack: () => ForwardTarget | null | Promise<ForwardTarget | null>;
  /** The filters of this response. */
  readonly passOn: () => readonly ContentFilter[];
}

/** Replaces a response by that of another model, or passes it on. */
export class FallbackFilter implements ContentFilter {
  readonly #options: FallbackFilterOptions;
  #pieces: Buffer[] = [];
  #state: "asks" | "waits" | "passes" = "asks";
  #hasEnded = false;

  constructor(options: FallbackFilterOptions) {
    this.#options = options;
  }

  get holdsHead(): boolean {
    return this.#state !== "passes";
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    if (this.#state === "passes") {
      output.write(bytes);
      return;
    }
    this.#pieces.push(Buffer.from(bytes));
    if (this.#state === "asks") this.#ask(output);
  }

  onEnd(output: ContentOutput): void {
    this.#hasEnded = true;
    if (this.#state === "asks") this.#ask(output);
    else if (this.#state === "passes") output.end();
  }

  #ask(output: ContentOutput): void {
    this.#state = "waits";
    const target = this.#options.fallBack();
    if (target instanceof Promise) {
      output.pause();
      target.then(
        (found) => this.#continue(found, output),
        (error: unknown) => output.fail(error),
      );
    } else this.#continue(target, output);
  }

  #continue(target: ForwardTarget | null, output: ContentOutput): void {
    if (target !== null) {
      if (!output.retry(target)) output.fail(new Error("The response can no longer be replaced"));
      return;
    }
    this.#state = "passes";
    output.append(this.#options.passOn());
    for (const piece of this.#pieces.splice(0)) output.write(piece);
    output.resume();
    if (this.#hasEnded) output.end();
  }
}
