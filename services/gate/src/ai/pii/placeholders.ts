// Placeholders of one request: equal values have equal ones, and the values come back in reversible mode.

/** Values of one request that have placeholders of their own. */
const VALUES_MAX = 10_000;
const NAME_CHARACTERS_MAX = 40;
const OPEN = 0x5b;
const CLOSE = 0x5d;

/** The placeholders of one request. */
export class Placeholders {
  /** Number of entities that were replaced. */
  replaced = 0;
  readonly #isReversible: boolean;
  readonly #ofValues = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  readonly #taken = new Set<string>();
  #isSealed = false;

  constructor(isReversible: boolean) {
    this.#isReversible = isReversible;
  }

  /** True if answers get the values back. */
  get isReversible(): boolean {
    return this.#isReversible && this.#values.size > 0;
  }

  /** Notes placeholders that the user has typed: they never stand for a value. */
  reserve(text: string): void {
    for (let at = text.indexOf("["); at !== -1; at = text.indexOf("[", at + 1)) {
      const end = findPlaceholderEnd(text, at);
      if (end !== -1) this.#taken.add(text.slice(at, end));
    }
  }

  /** The request is complete: values that answers have never come back. */
  seal(): void {
    this.#isSealed = true;
  }

  /** The placeholder of a value. */
  take(name: string, value: string): string {
    this.replaced++;
    const key = `${name}\n${value}`;
    const known = this.#ofValues.get(key);
    if (known !== undefined) return known;
    const placeholder = this.#next(name);
    if (this.#ofValues.size >= VALUES_MAX) return placeholder;
    this.#ofValues.set(key, placeholder);
    if (this.#isReversible && !this.#isSealed) this.#values.set(placeholder, value);
    return placeholder;
  }

  /** A placeholder for a value of which only the beginning is known. */
  takeUnknown(name: string): string {
    this.replaced++;
    return this.#next(name);
  }

  /** Puts the values back into a text; `encode` writes a value in the form of the text. */
  restore(text: string, encode: (value: string) => string): string {
    let restored = "";
    let from = 0;
    for (let at = text.indexOf("["); at !== -1; at = text.indexOf("[", at + 1)) {
      const end = findPlaceholderEnd(text, at);
      const value = end === -1 ? undefined : this.#values.get(text.slice(at, end));
      if (value === undefined) continue;
      restored += text.slice(from, at) + encode(value);
      from = end;
    }
    return from === 0 ? text : restored + text.slice(from);
  }

  #next(name: string): string {
    for (;;) {
      const number = (this.#numbers.get(name) ?? 0) + 1;
      this.#numbers.set(name, number);
      const placeholder = `[${name}_${number}]`;
      if (!this.#taken.has(placeholder)) return placeholder;
    }
  }
}

// The end of `[NAME_1]` at `at`; -1 if something else stands there.
function findPlaceholderEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== OPEN) return -1;
  for (let end = at + 1; end < text.length && end - at <= NAME_CHARACTERS_MAX; end++) {
    const code = text.charCodeAt(end);
    if (code === CLOSE) return end > at + 1 ? end + 1 : -1;
    const isName = (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39);
    if (!isName && code !== 0x5f) return -1;
  }
  return -1;
}
