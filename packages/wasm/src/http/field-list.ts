// The fields of a message as a guest sees and changes them.

/** Fields in order. Values are latin1: one character for each byte. Names keep their case and are compared without it. */
export class FieldList {
  /** Name in lower case, name as sent, value. */
  #entries: [key: string, name: string, value: string][];
  #isChanged = false;

  constructor(fields: Iterable<readonly [name: string, value: string]> = []) {
    this.#entries = Array.from(fields, ([name, value]) => [name.toLowerCase(), name, value]);
  }

  /** True once a field was set, added or removed. */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** The fields with their names as sent or set. */
  list(): [name: string, value: string][] {
    return this.#entries.map(([, name, value]) => [name, value]);
  }

  /** Each name once, in lower case. */
  listNames(): string[] {
    return [...new Set(this.#entries.map(([key]) => key))];
  }

  /** The values of all lines with this name. */
  listValues(name: string): string[] {
    const key = name.toLowerCase();
    const values: string[] = [];
    for (const entry of this.#entries) if (entry[0] === key) values.push(entry[2]);
    return values;
  }

  /** Replaces all lines with this name, in the place of the first. */
  set(name: string, value: string): void {
    const key = name.toLowerCase();
    const at = this.#entries.findIndex((entry) => entry[0] === key);
    this.#isChanged = true;
    if (at === -1) {
      this.#entries.push([key, name, value]);
      return;
    }
    this.#entries[at] = [key, name, value];
    this.#entries = this.#entries.filter((entry, index) => index === at || entry[0] !== key);
  }

  add(name: string, value: string): void {
    this.#isChanged = true;
    this.#entries.push([name.toLowerCase(), name, value]);
  }

  remove(name: string): void {
    const key = name.toLowerCase();
    const kept = this.#entries.filter((entry) => entry[0] !== key);
    if (kept.length === this.#entries.length) return;
    this.#isChanged = true;
    this.#entries = kept;
  }
}
