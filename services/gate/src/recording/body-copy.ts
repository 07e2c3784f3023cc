// Copies of bodies while they pass: bounded per body and per worker.
import { createHash, type Hash } from "node:crypto";

/** Memory of all copies of one worker. */
export class CopyBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes memory; false if there is not enough. */
  claim(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** The copy of one body. A body above the limit is only counted, and hashed if required. `prompts`: nothing of it is kept. */
export class BodyCopy {
  /** Size of the body so far. */
  bytes = 0;
  /** Reason why the content is not kept, if it is not. */
  readonly omission: "too-large" | "prompts";
  readonly #bytesMax: number;
  readonly #hash: Hash | undefined;
  #pieces: Buffer[] | undefined = [];
  #held = 0;

  constructor(bytesMax: number, isHashed: boolean, omission: BodyCopy["omission"] = "too-large") {
    this.omission = omission;
    this.#bytesMax = omission === "prompts" ? 0 : bytesMax;
    this.#hash = isHashed && omission !== "prompts" ? createHash("sha256") : undefined;
  }

  /** Copies a piece. False if the budget is exhausted: the exchange cannot be recorded. */
  push(bytes: Buffer, budget: CopyBudget): boolean {
    this.bytes += bytes.length;
    this.#hash?.update(bytes);
    if (this.#pieces === undefined) return true;
    if (this.bytes > this.#bytesMax) {
      this.drop(budget);
      return true;
    }
    if (!budget.claim(bytes.length)) return false;
    this.#held += bytes.length;
    this.#pieces.push(Buffer.from(bytes));
    return true;
  }

  /** The content; undefined if it was above the limit. */
  read(): Buffer | undefined {
    return this.#pieces === undefined ? undefined : Buffer.concat(this.#pieces);
  }

  /** SHA-256 of the content in hex; undefined if it is not hashed. Call it once. */
  digest(): string | undefined {
    return this.#hash?.digest("hex");
  }

  /** Releases the memory. */
  drop(budget: CopyBudget): void {
    budget.release(this.#held);
    this.#held = 0;
    this.#pieces = undefined;
  }
}
