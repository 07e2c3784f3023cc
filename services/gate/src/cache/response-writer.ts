// Stores a response while it passes to its client.
import type { ContentFilter, ContentOutput } from "@platform/http1";
import type { SharedCache } from "../shared-state/index.ts";

/** Stores the content of one response; `onDone` is called once with whether it is stored. */
export class ResponseWriter implements ContentFilter {
  readonly #cache: SharedCache;
  readonly #onDone: (isStored: boolean) => void;
  #entry: number;
  /** Bytes of the content that have not come yet; NaN if its length is not known before its end. */
  #missingBytes: number;

  /** `entry` was begun with the head of the response; `contentLength` is -1 if it does not tell the length. */
  constructor(
    cache: SharedCache,
    entry: number,
    contentLength: number,
    onDone: (isStored: boolean) => void,
  ) {
    this.#cache = cache;
    this.#entry = entry;
    this.#missingBytes = contentLength < 0 ? NaN : contentLength;
    this.#onDone = onDone;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    if (this.#entry !== -1 && !this.#cache.append(this.#entry, bytes)) this.#giveUp();
    this.#missingBytes -= bytes.length;
    // A client that has all bytes may ask another worker before this one is told of the end.
    if (this.#missingBytes === 0) this.#publish();
    output.write(bytes);
  }

  onEnd(output: ContentOutput): void {
    this.#publish();
    output.end();
  }

  onAbort(): void {
    if (this.#entry !== -1) this.#giveUp();
  }

  #publish(): void {
    const entry = this.#entry;
    this.#entry = -1;
    if (entry !== -1) this.#onDone(this.#cache.publish(entry));
  }

  #giveUp(): void {
    this.#cache.discard(this.#entry);
    this.#entry = -1;
    this.#onDone(false);
  }
}
