// Tags and filters of standard Liquid that LiquidJS lacks or has in another form, and values that have no text.
import {
  CommentTag,
  filters,
  ForTag,
  TablerowTag,
  Tag,
  TagToken,
  type Context,
  type Emitter,
  type Liquid,
  type Template,
  type TopLevelToken,
} from "liquidjs";

/** Called for a value that has no text: an object, Infinity or NaN. */
export type OnUnprintable = (kind: "object" | "number") => void;

const RAW_WITH_DASHES = /\{%(-?)\s*raw\s*(-?)%\}([\s\S]*?)\{%(-?)\s*endraw\s*(-?)%\}/g;
const RENDER_EACH =
  /(\brender\s+(["'])([\w/-]+)\2\s+for\s+(?:\([^)%]*\)|[^\s,%()-]+(?:-[^\s,%()-]+)*)(?=[\s,%-]))(?!\s+as\b)/g;
/** Filters whose results may be Infinity or NaN. */
const ARITHMETIC = [
  "plus",
  "minus",
  "times",
  "abs",
  "ceil",
  "floor",
  "round",
  "sum",
  "at_least",
  "at_most",
] as const;

/** Digits of a binary number that are exact. */
const DECIMAL_DIGITS = 15;
/** Lists in lists are joined as one. */
const NESTING_MAX = 100;

type Handler = (this: unknown, value: unknown, ...args: unknown[]) => unknown;

/** Adds the tags and filters. */
export function addStandardLiquid(liquid: Liquid, onUnprintable: OnUnprintable): void {
  liquid.registerTag("comment", NestedCommentTag);
  liquid.registerTag("doc", DocTag);
  liquid.registerTag("ifchanged", IfChangedTag);
  liquid.registerTag("for", NestedForTag);
  liquid.registerTag("tablerow", LinedTablerowTag);
  const toFinite = (value: unknown): unknown => {
    if (typeof value !== "number" || Number.isInteger(value)) return value;
    // Standard Liquid calculates with decimals: 0.1 and 0.2 are 0.3.
    if (Number.isFinite(value)) return Number(value.toPrecision(DECIMAL_DIGITS));
    onUnprintable("number");
    return "";
  };
  const standard = filters as unknown as Record<string, Handler>;
  for (const name of ARITHMETIC) {
    const handler = standard[name]!;
    liquid.registerFilter(name, function (value: unknown, ...args: unknown[]) {
      // LiquidJS counts what is no number as 0.
      const isTextless = [value, ...args].some((one) => one instanceof TextlessNumber);
      if (isTextless) return toFinite(Number.NaN);
      const result = handler.call(this, value, ...args);
      return isGenerator(result) ? finish(result, toFinite) : toFinite(result);
    });
  }
  liquid.registerFilter("divided_by", function (value: unknown, divisor: unknown) {
    const [a, b] = [Number(value ?? 0), Number(divisor)];
    if (b === 0) throw new Error("divided by 0");
    // The division of two integers is one; `2.0` or `7.0` in the source says that it is none.
    const isFloat = [value, divisor].some(isFractionText) || hasFraction(this.token);
    const isInteger = Number.isInteger(a) && Number.isInteger(b) && !isFloat;
    return toFinite(isInteger ? Math.floor(a / b) : a / b);
  });
  liquid.registerFilter("modulo", (value: unknown, divisor: unknown) => {
    const [a, b] = [Number(value ?? 0), Number(divisor)];
    if (b === 0) throw new Error("divided by 0");
    return toFinite(((a % b) + b) % b);
  });
  // The output of HTML is escaped; what these filters return is so already.
  for (const [name, handler] of [
    ["escape", standard["escape"]!],
    ["h", standard["escape"]!],
    ["escape_once", standard["escape_once"]!],
  ] as const) {
    liquid.registerFilter(name, { raw: true, handler });
  }
  liquid.registerFilter("base64_url_safe_encode", (value: unknown) =>
    Buffer.from(toText(value)).toString("base64").replaceAll("+", "-").replaceAll("/", "_"),
  );
  liquid.registerFilter("base64_url_safe_decode", (value: unknown) =>
    Buffer.from(toText(value), "base64url").toString(),
  );
  for (const name of ["size", "first", "last"] as const) {
    const handler = standard[name]!;
    liquid.registerFilter(name, function (value: unknown, ...args: unknown[]) {
      if (!(value instanceof TextlessObject)) return handler.call(this, value, ...args);
      // A hash has a first pair and, in standard Liquid, no last one.
      const entries = Object.entries(value);
      return name === "size" ? entries.length : name === "first" ? entries[0] : undefined;
    });
  }
  liquid.registerFilter("uniq", function (this: unknown, value: unknown, key: unknown) {
    if (typeof key !== "string" || !Array.isArray(value))
      return standard["uniq"]!.call(this, value);
    const seen = new Set<unknown>();
    return value.filter((one: unknown) => {
      const found = readMember(one, key);
      return !seen.has(found) && seen.add(found);
    });
  });
  liquid.registerFilter("compact", function (this: unknown, value: unknown, key: unknown) {
    if (typeof key !== "string" || !Array.isArray(value))
      return standard["compact"]!.call(this, value);
    return value.filter((one: unknown) => (readMember(one, key) ?? null) !== null);
  });
  liquid.registerFilter("join", function (this: unknown, value: unknown, glue: unknown) {
    const flat = Array.isArray(value) ? value.flat(NESTING_MAX) : value;
    return standard["join"]!.call(this, flat, glue);
  });
  liquid.registerFilter("split", function (this: unknown, value: unknown, separator: unknown) {
    if (separator !== " ") return standard["split"]!.call(this, value, separator);
    return toText(value)
      .split(/[ \t\r\n\v\f\0]+/)
      .filter((one) => one !== "");
  });
}

/** Returns a source in the forms that LiquidJS reads: `raw` with dashes, and `render … for` without a name. */
export function toStandardSource(source: string): string {
  return source
    .replaceAll(
      RAW_WITH_DASHES,
      (whole, outer: string, left: string, text: string, right: string, end: string) => {
        if (left === "" && right === "") return whole;
        const trimmed = left === "" ? text : text.trimStart();
        return `{%${outer} raw %}${right === "" ? trimmed : trimmed.trimEnd()}{% endraw ${end}%}`;
      },
    )
    .replaceAll(
      RENDER_EACH,
      (each, _, _quote: string, name: string) =>
        `${each} as ${name.slice(name.lastIndexOf("/") + 1)}`,
    );
}

/** An object of the variables: it has members and no text. */
class TextlessObject {
  static onUnprintable: OnUnprintable = () => {};

  toString(): string {
    TextlessObject.onUnprintable("object");
    return "";
  }
}

/** Returns variables whose objects and numbers never appear as `[object Object]`, `Infinity` or `NaN`. */
export function toTextlessScope(
  variables: Readonly<Record<string, unknown>>,
  onUnprintable: OnUnprintable,
): Record<string, unknown> {
  TextlessObject.onUnprintable = onUnprintable;
  return convertMembers({}, variables);
}

/** Infinity or NaN of the variables: `1e999` in JSON. */
class TextlessNumber {
  toString(): string {
    TextlessObject.onUnprintable("number");
    return "";
  }

  valueOf(): number {
    return Number.NaN;
  }

  toJSON(): null {
    return null;
  }
}

function convert(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return new TextlessNumber();
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(convert);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const hash = convertMembers(new TextlessObject() as Record<string, unknown>, value);
  // `hash.first` is its first pair, unless it has a member of this name.
  if (!Object.hasOwn(hash, "first")) {
    Object.defineProperty(hash, "first", { get: () => Object.entries(hash)[0] });
  }
  return hash;
}

function convertMembers(target: Record<string, unknown>, source: object): Record<string, unknown> {
  for (const [name, value] of Object.entries(source)) {
    Object.defineProperty(target, name, {
      value: convert(value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return target;
}

/** `comment`, which may contain others. */
class NestedCommentTag extends CommentTag {
  constructor(token: TagToken, rest: TopLevelToken[], liquid: Liquid) {
    super(token, takeUntil(token, rest, "comment", "endcomment"), liquid);
  }
}

/** Documentation of a template; it is not shown. */
class DocTag extends Tag {
  constructor(token: TagToken, rest: TopLevelToken[], liquid: Liquid) {
    super(token, rest, liquid);
    takeUntil(token, rest, "", "enddoc");
  }

  render(): void {}
}

// Takes the tokens of a block; returns its end, for tags that look for it.
function takeUntil(
  token: TagToken,
  rest: TopLevelToken[],
  begin: string,
  end: string,
): TopLevelToken[] {
  let depth = 1;
  for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
    if (!(next instanceof TagToken)) continue;
    if (next.name === begin) depth += 1;
    if (next.name === end) depth -= 1;
    if (depth === 0) return [next];
  }
  throw new Error(`tag ${token.getText()} not closed`);
}

/** Shows its content if it differs from the last time. */
class IfChangedTag extends Tag {
  readonly #templates: Template[] = [];

  constructor(token: TagToken, rest: TopLevelToken[], liquid: Liquid) {
    super(token, rest, liquid);
    const stream = liquid.parser.parseStream(rest);
    stream
      .on("tag:endifchanged", () => stream.stop())
      .on("template", (template: Template) => void this.#templates.push(template))
      .on("end", () => {
        throw new Error(`tag ${token.getText()} not closed`);
      });
    stream.start();
  }

  *render(context: Context, emitter: Emitter): Generator<unknown, void, string> {
    const text = yield this.liquid.renderer.renderTemplates(this.#templates, context);
    if (context.getRegister("ifchanged") === text) return;
    context.setRegister("ifchanged", text);
    emitter.write(text);
  }

  // oxlint-disable-next-line require-yield -- the static analysis expects a generator
  *children(): Generator<unknown, Template[]> {
    return this.#templates;
  }
}

/** `for`, whose `forloop` has that of the loop around it. */
class NestedForTag extends ForTag {
  override *render(
    context: Context,
    emitter: Emitter,
  ): Generator<unknown, void | string, Template[]> {
    const parent = (context.getSync(["forloop"]) ?? undefined) as unknown;
    const push = context.push.bind(context);
    context.push = (scope) => {
      const { forloop } = scope as { forloop?: object };
      if (forloop !== undefined) {
        context.push = push;
        Object.assign(forloop, { parentloop: parent });
      }
      return push(scope);
    };
    try {
      return yield* super.render(context, emitter);
    } finally {
      context.push = push;
    }
  }
}

/** `tablerow`, with line ends between its rows. */
class LinedTablerowTag extends TablerowTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, unknown> {
    const lined = Object.create(emitter) as Emitter;
    let isFirst = true;
    lined.write = (text: unknown) => {
      emitter.write(text);
      if (isFirst || text === "</tr>") emitter.write("\n");
      isFirst = false;
    };
    yield* super.render(context, lined);
  }
}

function isGenerator(value: unknown): value is Generator<unknown, unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value && "next" in value;
}

function* finish(
  result: Generator<unknown, unknown>,
  change: (value: unknown) => unknown,
): Generator<unknown, unknown> {
  return change(yield* result);
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

function readMember(value: unknown, key: string): unknown {
  if (!(value instanceof TextlessObject) || !Object.hasOwn(value, key)) return null;
  return (value as Record<string, unknown>)[key];
}

function isFractionText(value: unknown): boolean {
  return typeof value === "string" && /^\s*-?\d+\.\d+\s*$/.test(value);
}

/** Position of a filter in the source. */
interface FilterPosition {
  readonly input: string;
  readonly begin: number;
  readonly end: number;
}

// Numbers of JavaScript do not tell 7.0 from 7: the source of the whole expression up to the end of the filter does.
function hasFraction({ input, begin, end }: FilterPosition): boolean {
  const start = Math.max(input.lastIndexOf("{{", begin), input.lastIndexOf("{%", begin));
  const expression = input.slice(start, end).replaceAll(/"[^"]*"|'[^']*'/g, "");
  return /(?<![\w.\]])-?\d+\.\d/.test(expression);
}
