// Standard output of the log. Lines that follow each other closely are written together: a system call costs more than a
// line.
import { LineBuffer } from "./line-buffer.ts";

/** Buffering time. */
const GATHER_MS = 20;
/** A buffer of this size is written immediately. */
const GATHERED_BYTES_MAX = 65_536;

/** Standard output of a log. Lines keep their order and are written immediately, except after `gather`. */
export class LogOutput {
  readonly format: "json" | "pretty";
  readonly #gathered = new LineBuffer(GATHERED_BYTES_MAX);
  #isGathering = false;

  constructor(format: "json" | "pretty" | "auto") {
    const isTerminal = process.stdout.isTTY;
    this.format = format === "auto" ? (isTerminal ? "pretty" : "json") : format;
    // A closed pipe (`| head`) must not end the service.
    process.stdout.on("error", () => {});
    process.once("exit", () => this.#flush());
  }

  /** Writes a complete line. */
  readonly write = (line: string): void => {
    if (this.#isGathering) {
      if (this.#gathered.add(line)) return;
      this.#flush();
      if (this.#gathered.add(line)) return;
    }
    process.stdout.write(line);
  };

  /** Starts buffering, for at most 20 ms. */
  gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    setTimeout(this.#end, GATHER_MS);
  }

  readonly #end = (): void => {
    this.#isGathering = false;
    this.#flush();
  };

  #flush(): void {
    if (this.#gathered.length === 0) return;
    process.stdout.write(Buffer.from(this.#gathered.view()));
    this.#gathered.clear();
  }
}
