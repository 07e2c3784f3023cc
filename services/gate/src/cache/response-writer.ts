// Stores a response while it passes to its client.
import type { ContentFilter, ContentOutput } from "@platform/http1";
import type { SharedCache } from "../shared-state/index.ts";

/** Stores the content of one response; `onDone` is called once with whether it is stored. */
export class ResponseWriter implements ContentFilter {
  readonly #cache: SharedCache;
  readonly #onDone: (isStored: boolean) => void;
  #entry: number;

  /** `entry` was begun with the head of the response. */
  constructor(cache: SharedCache, entry: number, onDone: (isStored: boolean) => void) {
    this.#cache = cache;
    this.#entry = entry;
    this.#onDone = onDone;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    if (this.#entry !== -1 && !this.#cache.append(this.#entry, bytes)) this.#giveUp();
    output.write(bytes);
  }

  onEnd(output: ContentOutput): void {
    const entry = this.#entry;
    this.#entry = -1;
    if (entry !== -1) this.#onDone(this.#cache.publish(entry));
    output.end();
  }

  onAbort(): void {
    if (this.#entry !== -1) this.#giveUp();
  }

  #giveUp(): void {
    this.#cache.discard(this.#entry);
    this.#entry = -1;
    this.#onDone(false);
  }
}
