// Standard output for the log: lines that come close together go out in one write. A system call costs more than a line.
import { LineBuffer } from "./line-buffer.ts";

/** Time in which lines are gathered. */
const GATHER_MS = 20;
/** Lines go out before that once they fill this. */
const GATHERED_BYTES_MAX = 65_536;

/** Standard output for a log. Lines go out in the order in which they came, at once except after `gather`. */
export class LogOutput {
  readonly format: "json" | "pretty";
  readonly #gathered = new LineBuffer(GATHERED_BYTES_MAX);
  #isGathering = false;

  constructor(format: "json" | "pretty" | "auto") {
    const isTerminal = process.stdout.isTTY;
    this.format = format === "auto" ? (isTerminal ? "pretty" : "json") : format;
    // A reader that has gone away (`| head`) must not end the service.
    process.stdout.on("error", () => {});
    process.once("exit", () => this.#flush());
  }

  /** Takes one whole line. */
  readonly write = (line: string): void => {
    if (this.#isGathering) {
      if (this.#gathered.add(line)) return;
      this.#flush();
      if (this.#gathered.add(line)) return;
    }
    process.stdout.write(line);
  };

  /** From now on lines wait for others, for 20 ms at most. */
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
