// Memory for what requests bring beside objects: documents and forms, which are read as a whole before anything is done.
import { S3Error } from "../wire/error.ts";

/** All of it; what one source may hold is half. */
const BYTES_MAX = 64 * 1024 * 1024;

/** Counts it by who sends it. There is no waiting: these requests are small, and repeated easily. */
export class RequestMemory {
  readonly #bytesMax: number;
  readonly #bySource = new Map<string, number>();
  #taken = 0;

  constructor(bytesMax = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Throws ServiceUnavailable where there is none left. */
  take(source: string, bytes: number): void {
    const own = (this.#bySource.get(source) ?? 0) + bytes;
    if (own > this.#bytesMax / 2 || this.#taken + bytes > this.#bytesMax) {
      throw new S3Error("ServiceUnavailable", {
        message: "Too many documents and forms are being received",
        headers: [["Retry-After", "1"]],
      });
    }
    this.#bySource.set(source, own);
    this.#taken += bytes;
  }

  /** Gives it back. */
  give(source: string, bytes: number): void {
    const left = (this.#bySource.get(source) ?? 0) - bytes;
    if (left > 0) this.#bySource.set(source, left);
    else this.#bySource.delete(source);
    this.#taken -= bytes;
  }
}
