// Replaces personal data in texts: whole ones, and texts that arrive in pieces.
import { isDigit, isLetter } from "./characters.ts";
import type { PiiSearch } from "./entity.ts";
import { findEntities } from "./find-entities.ts";
import { findOpenPem, findOpenSecret, findPemEnd, isKeyCharacter } from "./find-secrets.ts";
import type { Placeholders } from "./placeholders.ts";

/** Longest text that is held because it could be the start of an entity. */
export const HELD_CHARACTERS_MAX = 256;
/** Text before a piece in which a word may announce a number. */
const CONTEXT_CHARACTERS = 32;
/** Longest line that opens a private key. */
const PEM_LINE_MAX = 80;
const PEM_LABEL_END = "-----";
const PEM_LABEL_START = 11;
const SEPARATORS = " -./()\u00a0";
const SEPARATORS_MAX = 3;
/** Scripts without spaces between words begin here: none of their characters is part of an entity. */
const UNSPACED_FROM = 0x2e80;

/** A text without entities; undefined if it has none. */
export function maskText(
  text: string,
  search: PiiSearch,
  placeholders: Placeholders,
): string | undefined {
  const entities = findEntities(text, search);
  if (entities.length === 0) return undefined;
  let masked = "";
  let from = 0;
  for (const { start, end, name } of entities) {
    masked += text.slice(from, start) + placeholders.take(name, text.slice(start, end));
    from = end;
  }
  return masked + text.slice(from);
}

/** Options of {@link MaskedText}. */
export interface MaskedTextOptions {
  readonly search: PiiSearch;
  readonly placeholders: Placeholders;
  /** Writes a value that comes back; undefined if none does. */
  readonly encode: ((value: string) => string) | undefined;
  /** Longest text that is held. */
  readonly heldMax: number;
  /** Receives what leaves, with all placeholders. */
  readonly collect?: (masked: string) => void;
}

/**
 * A text that arrives in pieces. What leaves has no entities, wherever the pieces end: their last part is held while it
 * could be the start of one.
 *
 * ```text
 *   … my card is 4111 1111 11
 *   leaves      |held: groups of digits, and the word before a space
 * ```
 */
export class MaskedText {
  readonly #options: MaskedTextOptions;
  #held = "";
  /** The end of what has left, before it was masked. */
  #context = "";
  /** The rest of a secret that is too long to be held is dropped. */
  #dropping: "no" | "key" | "pem" = "no";

  constructor(options: MaskedTextOptions) {
    this.#options = options;
  }

  /** True while text is held. */
  get isHolding(): boolean {
    return this.#held !== "";
  }

  /** Adds a piece; returns what may leave. */
  push(piece: string): string {
    let text = this.#held + piece;
    this.#held = "";
    if (this.#dropping !== "no") text = this.#drop(text);
    if (this.#dropping !== "no") return "";
    const pem = this.#findPem(text);
    if (pem !== undefined) return pem;
    const { heldMax } = this.#options;
    const start = this.#findHeld(text);
    if (text.length - start <= heldMax) {
      this.#held = text.slice(start);
      return this.#mask(text.slice(0, start));
    }
    if (findOpenSecret(text, start) && this.#options.search.kinds.has("secret")) {
      this.#dropping = "key";
      const before = this.#mask(text.slice(0, start));
      return before + this.#takeSecret();
    }
    const cut = text.length - heldMax;
    this.#held = text.slice(cut);
    return this.#mask(text.slice(0, cut));
  }

  /** The text has ended; returns the rest. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    this.#dropping = "no";
    return rest === "" ? "" : this.#mask(rest);
  }

  #mask(text: string): string {
    if (text === "") return "";
    const { search, placeholders, encode, collect } = this.#options;
    const context = this.#context;
    this.#context = (context + text).slice(-CONTEXT_CHARACTERS);
    const whole = context + text;
    let masked = "";
    let from = context.length;
    for (const { start, end, name } of findEntities(whole, search)) {
      // An entity of the context has left already, as a placeholder.
      if (start < from) continue;
      const placeholder = placeholders.take(name, whole.slice(start, end));
      collect?.(whole.slice(from, start) + placeholder);
      masked += this.#restore(whole.slice(from, start), encode) + placeholder;
      from = end;
    }
    collect?.(whole.slice(from));
    return masked + this.#restore(whole.slice(from), encode);
  }

  // The beginning of a secret that is longer than what is held.
  #takeSecret(): string {
    const placeholder = this.#options.placeholders.takeUnknown("SECRET");
    this.#options.collect?.(placeholder);
    return placeholder;
  }

  #restore(text: string, encode: ((value: string) => string) | undefined): string {
    return encode === undefined ? text : this.#options.placeholders.restore(text, encode);
  }

  // The rest after a secret that is being dropped.
  #drop(text: string): string {
    if (this.#dropping === "key") {
      let at = 0;
      while (at < text.length && (isKeyCharacter(text.charCodeAt(at)) || text[at] === ".")) at++;
      if (at === text.length) return "";
      this.#dropping = "no";
      return text.slice(at);
    }
    const end = text.indexOf("-----END ");
    const dashes = end === -1 ? -1 : text.indexOf(PEM_LABEL_END, end + 9);
    if (dashes === -1) {
      this.#held = text.slice(end === -1 ? -PEM_LINE_MAX : end);
      return "";
    }
    this.#dropping = "no";
    return text.slice(dashes + PEM_LABEL_END.length);
  }

  // A private key that has begun: held while it may be, then dropped up to its end. Undefined if there is none.
  #findPem(text: string): string | undefined {
    if (!this.#options.search.kinds.has("secret")) return undefined;
    const start = findOpenPem(text);
    if (start === -1) return undefined;
    const labelEnd = text.indexOf(PEM_LABEL_END, start + PEM_LABEL_START);
    if (labelEnd === -1) {
      if (text.length - start > PEM_LINE_MAX) return undefined;
    } else if (!text.slice(start, labelEnd).includes("PRIVATE KEY")) return undefined;
    if (text.length - start <= this.#options.heldMax || labelEnd === -1) {
      this.#held = text.slice(start);
      return this.#mask(text.slice(0, start));
    }
    this.#dropping = "pem";
    this.#held = text.slice(-PEM_LINE_MAX);
    const before = this.#mask(text.slice(0, start));
    return before + this.#takeSecret();
  }

  #findHeld(text: string): number {
    // The last line of a private key looks like the start of something else.
    const start = Math.max(findUnfinished(text), findPemEnd(text));
    if (this.#options.search.patterns.length === 0) return start;
    return Math.min(start, Math.max(0, text.length - HELD_CHARACTERS_MAX));
  }
}

/** Start of the part of a text that could continue as an entity. */
function findUnfinished(text: string): number {
  let start = findWordStart(text, text.length);
  for (;;) {
    let end = start;
    while (start - end < SEPARATORS_MAX && end > 0 && SEPARATORS.includes(text[end - 1]!)) {
      if (start - end === SEPARATORS_MAX) break;
      end--;
    }
    if (end === start || end === 0) return start;
    const previous = findWordStart(text, end);
    if (!mayHavePart(text, previous, end)) return start;
    start = previous;
  }
}

function findWordStart(text: string, end: number): number {
  let start = end;
  while (start > 0) {
    const code = text.charCodeAt(start - 1);
    if (code <= 0x20 || code === 0xa0 || code >= UNSPACED_FROM) break;
    start--;
  }
  return start;
}

// Words of numbers that are written in groups: they have digits, or are one or two letters or signs.
function mayHavePart(text: string, start: number, end: number): boolean {
  let letters = 0;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (isDigit(code)) return true;
    if (isLetter(code) || code >= 128) letters++;
  }
  return end > start && letters <= 2;
}
