// Fields of a request, by name.

/** Fields of a request; names are case-insensitive. */
export class RequestHeaders {
  readonly #block: string;
  #values: Map<string, string> | undefined;

  /** `block` contains field lines with CRLF, as latin1. */
  constructor(block: string) {
    this.#block = block;
  }

  /** The value of a field, several lines joined by `, ` (Cookie: `; `); undefined if absent. */
  get(name: string): string | undefined {
    return this.#read().get(name.toLowerCase());
  }

  /** True if the field is present. */
  has(name: string): boolean {
    return this.#read().has(name.toLowerCase());
  }

  /** Lower-case names and values. */
  [Symbol.iterator](): MapIterator<[name: string, value: string]> {
    return this.#read().entries();
  }

  #read(): Map<string, string> {
    return (this.#values ??= parseBlock(this.#block));
  }
}

function parseBlock(block: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of block.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon === -1) continue;
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "");
    const known = values.get(name);
    const separator = name === "cookie" ? "; " : ", ";
    values.set(name, known === undefined ? value : known + separator + value);
  }
  return values;
}
