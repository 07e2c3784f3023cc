// Rules of a policy as the data of the matcher module; the layout is drawn in `matcher.wat`.
import type { PolicyRule } from "../shared-state/index.ts";

/** Address of the data in the memory of the matcher. */
export const DATA_AT = 0x20000;

const HEAD_BYTES = 44;
const NAME_BYTES = 24;
const RULE_BYTES = 20;
const METHODS_MAX = 255;
const PROBLEM = JSON.stringify({
  type: "urn:platform:error:policy_denied",
  title: "Denied by policy",
  status: 403,
  detail: "The policy denies this request.",
  code: "policy_denied",
  error: "The policy denies this request.",
});

/** Encodes rules. Those that no request can match, because they name characters beyond latin1, are left out. */
export function encodeRules(rules: readonly PolicyRule[]): Buffer {
  const kept = rules.filter((rule) => isLatin1(rule.path) && isLatin1(rule.header?.equals));
  const names = [...new Set(kept.flatMap((rule) => rule.header?.name ?? []))];
  const texts = new TextPool(DATA_AT + HEAD_BYTES);
  const [problem, type, media] = [PROBLEM, "content-type", "application/problem+json"].map((text) =>
    texts.add(text),
  ) as [Placed, Placed, Placed];
  const nameTexts = names.map((name) => texts.add(name));
  const valueTexts = new Map(
    kept.flatMap(({ header }) =>
      header === undefined ? [] : [[header.equals, texts.add(header.equals)]],
    ),
  );
  const namesAt = texts.end;
  const rulesAt = namesAt + names.length * NAME_BYTES;
  const head = Buffer.alloc(HEAD_BYTES);
  const words = [kept.length, rulesAt, names.length, namesAt, ...problem, ...type, ...media];
  for (const [index, word] of words.entries()) head.writeUInt32LE(word, index * 4);
  // The text that requests are searched for.
  head.write(";", 40, "latin1");
  return Buffer.concat([
    head,
    texts.join(),
    ...names.map((name, index) => encodeName(name, nameTexts[index]!)),
    ...kept.map((rule) => encodeRule(rule, names, valueTexts)),
  ]);
}

type Placed = readonly [at: number, length: number];

/** Texts one after another, each once. */
class TextPool {
  readonly #texts: Buffer[] = [];
  readonly #known = new Map<string, Placed>();
  end: number;

  constructor(start: number) {
    this.end = start;
  }

  add(text: string): Placed {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const bytes = Buffer.from(text, "latin1");
    const placed: Placed = [this.end, bytes.length];
    this.#known.set(text, placed);
    this.#texts.push(bytes);
    this.end += bytes.length;
    return placed;
  }

  join(): Buffer {
    return Buffer.concat(this.#texts);
  }
}

// Lines of Cookie are joined by semicolons, those of other fields by commas.
function encodeName(name: string, [at, length]: Placed): Buffer {
  const entry = Buffer.alloc(NAME_BYTES);
  entry.writeUInt32LE(at, 0);
  entry.writeUInt32LE(length, 4);
  entry.write(name === "cookie" ? ";" : ",", 8, "latin1");
  return entry;
}

function encodeRule(
  { effect, methods = [], path, header }: PolicyRule,
  names: readonly string[],
  values: ReadonlyMap<string, Placed>,
): Buffer {
  const pieces = path === undefined ? [] : path.split("*");
  const entry = Buffer.alloc(RULE_BYTES);
  entry.writeUInt8(effect === "deny" ? 1 : 0, 4);
  entry.writeUInt8(Math.min(methods.length, METHODS_MAX), 5);
  entry.writeUInt16LE(pieces.length, 6);
  if (header !== undefined) {
    const [at, length] = values.get(header.equals)!;
    entry.writeUInt32LE(names.indexOf(header.name) + 1, 8);
    entry.writeUInt32LE(at, 12);
    entry.writeUInt32LE(length, 16);
  }
  const parts = [
    entry,
    ...methods.map((method) =>
      Buffer.from(`${String.fromCharCode(method.length)}${method}`, "latin1"),
    ),
    ...pieces.map((piece) => {
      const bytes = Buffer.alloc(2 + piece.length);
      bytes.writeUInt16LE(piece.length, 0);
      bytes.write(piece, 2, "latin1");
      return bytes;
    }),
  ];
  const rule = Buffer.concat(parts);
  rule.writeUInt32LE(rule.length, 0);
  return rule;
}

function isLatin1(text: string | undefined): boolean {
  return text === undefined || /^[\0-\u00ff]*$/.test(text);
}
