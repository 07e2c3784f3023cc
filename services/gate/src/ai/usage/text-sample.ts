// The beginning of texts, to estimate their tokens if the provider reports none.
import { estimateTokenCount } from "tokenx";

/** Estimating takes about half a millisecond per KiB. */
const SAMPLE_BYTES_MAX = 16_384;
const SAMPLE_BYTES_MIN = 512;

/** Counts the bytes of texts and keeps the first of them. */
export class TextSample {
  bytes = 0;
  #sample = Buffer.alloc(0);
  #length = 0;

  /** Adds `bytes[start, end)`, a text as it is written in JSON. */
  add(bytes: Buffer, start: number, end: number): void {
    this.bytes += end - start;
    const size = Math.min(end - start, SAMPLE_BYTES_MAX - this.#length);
    if (size <= 0) return;
    if (this.#length + size > this.#sample.length) {
      const needed = Math.max(SAMPLE_BYTES_MIN, this.#length + size, this.#sample.length * 2);
      const larger = Buffer.allocUnsafe(Math.min(SAMPLE_BYTES_MAX, needed));
      this.#sample.copy(larger, 0, 0, this.#length);
      this.#sample = larger;
    }
    bytes.copy(this.#sample, this.#length, start, start + size);
    this.#length += size;
  }

  /** Estimated tokens of all texts, at least 1 if there are some. */
  estimateTokens(): number {
    if (this.#length === 0) return 0;
    const text = this.#sample.toString("utf8", 0, this.#length).replaceAll(/\\[nrt]/g, " ");
    const tokens = estimateTokenCount(text) * (this.bytes / this.#length);
    return Math.max(1, Math.round(tokens));
  }
}
