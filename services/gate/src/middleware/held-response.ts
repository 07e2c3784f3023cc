// Filters of responses whose head waits for a guest.
import type { ContentFilter, ContentOutput, ResponseDraft } from "@platform/http1";
import type { DeferringFilter } from "../exchange/exchange.ts";
import { RESPONSE_BYTES_MAX } from "./request-messages.ts";

const HELD_MS_MAX = 30_000;

/** Options of {@link HeldResponse}. */
export interface HeldResponseOptions {
  /** The guest gets the whole content; otherwise the head alone, while the content waits at the upstream. */
  readonly ends: boolean;
  /** Called with the whole content, which is then ended with `finish`. */
  readonly onContent?: (content: Buffer) => void;
  /** There is more content than may be held, or it takes too long. Answers instead. */
  readonly onTooLarge: (reason: string) => void;
}

/** Content instead of the upstream's. */
export class ReplacedContent implements ContentFilter {
  readonly #content: Buffer;
  #isWritten = false;

  constructor(content: Buffer, draft: ResponseDraft) {
    this.#content = content;
    if (draft.hasContent || content.length > 0) draft.contentLength = content.length;
    else if (draft.status === 204 || draft.status === 304) draft.contentLength = -1;
  }

  onBytes(_bytes: Buffer, output: ContentOutput): void {
    this.#write(output);
  }

  onEnd(output: ContentOutput): void {
    this.#write(output);
    output.end();
  }

  #write(output: ContentOutput): void {
    if (this.#isWritten) return;
    this.#isWritten = true;
    if (this.#content.length > 0) output.write(this.#content);
  }
}

/** Holds a response until its guest has ended. */
export class HeldResponse implements DeferringFilter {
  readonly #options: HeldResponseOptions;
  readonly #timer: NodeJS.Timeout;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #output: ContentOutput | undefined;
  #isPaused = false;
  #hasEnded = false;
  #isOver = false;
  #choose: (() => readonly ContentFilter[] | undefined) | undefined;
  /** The guest has ended: content passes this filter, or as it is. */
  #next: ContentFilter | "pass" | undefined;

  constructor(options: HeldResponseOptions) {
    this.#options = options;
    this.#timer = setTimeout(
      () => this.#giveUp("The response was not complete in time to be buffered."),
      HELD_MS_MAX,
    );
  }

  get holdsHead(): boolean {
    if (this.#next === undefined || this.#choose !== undefined) return true;
    return this.#next !== "pass" && this.#next.holdsHead === true;
  }

  defer(choose: () => readonly ContentFilter[] | undefined): void {
    this.#choose = choose;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    this.#output = output;
    if (this.#isOver) return;
    if (this.#next !== undefined) {
      if (this.#appendRest(output)) this.#pass(bytes, output);
      return;
    }
    this.#bytes += bytes.length;
    if (this.#options.ends && this.#bytes > RESPONSE_BYTES_MAX) {
      this.#giveUp(`The response is larger than ${RESPONSE_BYTES_MAX} bytes.`);
      return;
    }
    this.#pieces.push(Buffer.from(bytes));
    if (this.#options.ends) return;
    this.#isPaused = true;
    output.pause();
  }

  onEnd(output: ContentOutput): void {
    this.#output = output;
    this.#hasEnded = true;
    if (this.#isOver) return;
    if (this.#next !== undefined) {
      if (this.#appendRest(output)) this.#end(output);
    } else if (this.#options.ends) {
      const content = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [];
      this.#options.onContent?.(content);
    }
  }

  onDrain(output: ContentOutput): void {
    if (this.#next !== undefined && this.#next !== "pass") this.#next.onDrain?.(output);
  }

  onAbort(): void {
    if (this.#next !== undefined && this.#next !== "pass") this.#next.onAbort?.();
    this.#close();
  }

  /** Ends the response with this content. */
  finish(content: Buffer, draft: ResponseDraft): void {
    if (this.#isOver) return;
    this.#close();
    const replaced = new ReplacedContent(content, draft);
    if (this.#appendRest(this.#output!)) replaced.onEnd(this.#output!);
  }

  /** Continues with the content that waits: through `filter`, or as it is. */
  proceed(filter: ContentFilter | undefined): void {
    if (this.#isOver) return;
    clearTimeout(this.#timer);
    this.#next = filter ?? "pass";
    const output = this.#output;
    if (output === undefined || !this.#appendRest(output)) return;
    for (const piece of this.#pieces.splice(0)) this.#pass(piece, output);
    if (this.#hasEnded) this.#end(output);
    else if (this.#isPaused) output.resume();
  }

  // The steps behind choose by the head that the guest has made; false if one of them has answered instead.
  #appendRest(output: ContentOutput): boolean {
    const choose = this.#choose;
    this.#choose = undefined;
    if (choose === undefined) return true;
    if (this.#next instanceof HeldResponse) {
      this.#next.defer(choose);
      return true;
    }
    const rest = choose();
    if (rest === undefined) this.#close();
    else output.append(rest);
    return rest !== undefined;
  }

  #pass(bytes: Buffer, output: ContentOutput): void {
    if (this.#next === "pass") output.write(bytes);
    else this.#next!.onBytes(bytes, output);
  }

  #end(output: ContentOutput): void {
    this.#isOver = true;
    if (this.#next === "pass") output.end();
    else this.#next!.onEnd(output);
  }

  #giveUp(reason: string): void {
    if (this.#isOver) return;
    this.#close();
    this.#options.onTooLarge(reason);
  }

  #close(): void {
    this.#isOver = true;
    this.#pieces = [];
    clearTimeout(this.#timer);
  }
}
