// Bare CR and LF in received content. Servers disagree on whether they end a line, which allows to hide a second message
// behind `\n.\n` (SMTP smuggling; RFC 5321 section 2.3.8).

const CR = 13;
const LF = 10;

/** Finds bare CR or LF in chunks. */
export class LineEndingCheck {
  #lastByte = 0;
  #hasBare = false;

  /** True if a chunk contained a CR without LF or an LF without CR. A CR at the end of the content also counts. */
  get hasBare(): boolean {
    return this.#hasBare || this.#lastByte === CR;
  }

  /** Checks the next chunk. */
  add(chunk: Uint8Array): void {
    if (chunk.length === 0 || this.#hasBare) return;
    if (this.#lastByte === CR && chunk[0] !== LF) this.#hasBare = true;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, at + 1)) {
      const before = at === 0 ? this.#lastByte : chunk[at - 1];
      if (before !== CR) this.#hasBare = true;
    }
    for (let at = chunk.indexOf(CR); at !== -1; at = chunk.indexOf(CR, at + 1)) {
      if (at < chunk.length - 1 && chunk[at + 1] !== LF) this.#hasBare = true;
    }
    this.#lastByte = chunk.at(-1)!;
  }
}
