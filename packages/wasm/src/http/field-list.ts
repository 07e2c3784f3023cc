// The fields of a message as a guest sees and changes them.

/** Fields in order. Values are latin1: one character for each byte. Names keep their case and are compared without it. */
export class FieldList {
  /** Name in lower case, name as sent, value. */
  readonly #entries: [key: string, name: string, value: string][] = [];
  #isChanged = false;

  constructor(fields: readonly (readonly [name: string, value: string])[] = []) {
    for (const field of fields) this.#entries.push([toKey(field[0]), field[0], field[1]]);
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
    const key = toKey(name);
    const values: string[] = [];
    for (const entry of this.#entries) if (entry[0] === key) values.push(entry[2]);
    return values;
  }

  /** Replaces all lines with this name, in the place of the first. */
  set(name: string, value: string): void {
    const key = toKey(name);
    const entries = this.#entries;
    this.#isChanged = true;
    let at = -1;
    for (let index = 0; index < entries.length; index++) {
      if (entries[index]![0] !== key) continue;
      if (at === -1) at = index;
      else entries.splice(index--, 1);
    }
    if (at === -1) entries.push([key, name, value]);
    else entries[at] = [key, name, value];
  }

  add(name: string, value: string): void {
    this.#isChanged = true;
    this.#entries.push([toKey(name), name, value]);
  }

  remove(name: string): void {
    const key = toKey(name);
    for (let index = this.#entries.length - 1; index >= 0; index--) {
      if (this.#entries[index]![0] !== key) continue;
      this.#isChanged = true;
      this.#entries.splice(index, 1);
    }
  }
}

/** Names in lower case: guests use few names, again and again. */
const KEYS = new Map<string, string>();
const KEYS_MAX = 1_000;

function toKey(name: string): string {
  const known = KEYS.get(name);
  if (known !== undefined) return known;
  const key = name.toLowerCase();
  if (KEYS.size >= KEYS_MAX) KEYS.clear();
  KEYS.set(name, key);
  return key;
}
