// Renders Liquid templates in memory, within limits of time, memory, depth and output.
import { Liquid, type Template } from "liquidjs";
import { addStandardLiquid, toStandardSource, toTextlessScope } from "./standard-liquid.ts";

/** A place in the source of a template, from 1, or of one of its partials. */
export interface TemplatePlace {
  line: number;
  column: number;
  /** Name of the partial; undefined for the template itself. */
  partial?: string | undefined;
}

/** The source of a part of a template, with the sources of the partials and layouts that it uses. */
export interface TemplateSource {
  /** Changes with the content, such as `welcome/de@3`. "" for a draft, whose parsed form is not kept. */
  id: string;
  source: string;
  /** Partials by name. */
  partials: ReadonlyMap<string, { id: string; source: string }>;
}

/** A failed template: `message` names the place, and contains nothing but the template's own text. */
export class TemplateError extends Error {
  readonly kind: "syntax" | "render" | "limit";
  /** The limit that was exceeded. */
  readonly limit: string | undefined;
  readonly place: TemplatePlace | undefined;

  constructor(
    kind: TemplateError["kind"],
    message: string,
    {
      limit,
      place,
      ...options
    }: ErrorOptions & { limit?: string; place?: TemplatePlace | undefined } = {},
  ) {
    super(message, options);
    this.name = "TemplateError";
    this.kind = kind;
    this.limit = limit;
    this.place = place;
  }
}

/** A path of a variable, such as `["user", "name"]`. */
export type VariablePath = readonly (string | number)[];

const SOURCE_CHARACTERS_MAX = 1024 * 1024;
/** Objects and characters that filters may create. */
const MEMORY_MAX = 20_000_000;
const OUTPUT_CHARACTERS_MAX = 5 * 1024 * 1024;
const UNPRINTABLE_WARNINGS: Readonly<Record<string, string>> = {
  object: "an object has no text and was left out",
  number: "a number that is infinite or undefined was left out",
};
const PARSED_MAX = 1_000;
const REFERENCE = /\{%-?\s*(?:render|include|layout)\s+(?:"([^"]*)"|'([^']*)'|([^\s"',%-]+))/g;

/** Escaping of values: `html` escapes them, `text` does not. */
export type TemplateFormat = "html" | "text";

/** Renders templates of one format. Not reentrant: every call is synchronous. */
export class TemplateEngine {
  readonly #liquid: Liquid;
  readonly #parsed = new Map<string, Template[]>();
  #partials: TemplateSource["partials"] = new Map();
  /** Kinds of values without a text that the last rendering met. */
  readonly #unprintable = new Set<string>();

  constructor(format: TemplateFormat) {
    this.#liquid = new Liquid({
      jsTruthy: true,
      ownPropertyOnly: true,
      strictFilters: true,
      timezoneOffset: 0,
      locale: "en-US",
      // Partials of another version are others: the key has their id, not their name.
      cache: {
        read: (key) => this.#parsed.get(this.#toPartialKey(key)),
        write: (key, parsed) => this.#keep(this.#toPartialKey(key), parsed as Template[]),
        remove: (key) => void this.#parsed.delete(this.#toPartialKey(key)),
      },
      parseLimit: SOURCE_CHARACTERS_MAX * 4,
      memoryLimit: MEMORY_MAX,
      // Partials come from the template store only, never from files.
      relativeReference: false,
      root: [""],
      fs: {
        resolve: (_root, name) => this.#partials.get(name)?.id ?? name,
        existsSync: (id) => this.#findPartial(id) !== undefined,
        readFileSync: (id) => this.#findPartial(id)!,
        contains: async () => true,
        containsSync: () => true,
        exists: async (id) => this.#findPartial(id) !== undefined,
        readFile: async (id) => this.#findPartial(id)!,
      },
      ...(format === "html" ? { outputEscape: "escape" as const } : {}),
    });
    addStandardLiquid(this.#liquid, (kind) => void this.#unprintable.add(kind));
  }

  /** Renders a source within a time. Throws TemplateError. */
  render(
    source: TemplateSource,
    variables: Readonly<Record<string, unknown>>,
    renderLimit: number,
  ): string {
    return this.#use(source, (template) => {
      this.#unprintable.clear();
      const scope = toTextlessScope(variables, (kind) => void this.#unprintable.add(kind));
      const output = String(this.#liquid.renderSync(template, scope, { renderLimit }));
      if (output.length <= OUTPUT_CHARACTERS_MAX) return output;
      throw new TemplateError("limit", `the output exceeds ${OUTPUT_CHARACTERS_MAX} characters`);
    });
  }

  /** Values without a text that the last rendering met, as warnings: they were left out. */
  get warnings(): string[] {
    return [...this.#unprintable].map((kind) => UNPRINTABLE_WARNINGS[kind]!);
  }

  /** Parses a source. Throws TemplateError. */
  check(source: string): void {
    try {
      this.#liquid.parse(toStandardSource(source));
    } catch (error) {
      throw toTemplateError(error);
    }
  }

  /** Returns the paths of the variables that a source uses. Throws TemplateError. */
  findVariables(source: TemplateSource): VariablePath[] {
    return this.#use(source, (template) =>
      this.#liquid
        .globalVariableSegmentsSync(template)
        .map((segments) =>
          segments.slice(0, segments.findIndex(Array.isArray) >>> 0).filter(isPlainSegment),
        ),
    );
  }

  #use<T>(source: TemplateSource, work: (template: Template[]) => T): T {
    this.#partials = source.partials;
    try {
      return work(this.#parse(source));
    } catch (error) {
      throw toTemplateError(error, source.partials);
    }
  }

  #parse({ id, source }: TemplateSource): Template[] {
    if (id === "") return this.#liquid.parse(toStandardSource(source));
    const known = this.#parsed.get(id);
    if (known !== undefined) {
      this.#parsed.delete(id);
      this.#parsed.set(id, known);
      return known;
    }
    const parsed = this.#liquid.parse(toStandardSource(source));
    this.#keep(id, parsed);
    return parsed;
  }

  #keep(id: string, parsed: Template[]): void {
    if (this.#parsed.size >= PARSED_MAX) {
      for (const oldest of this.#parsed.keys()) {
        this.#parsed.delete(oldest);
        break;
      }
    }
    this.#parsed.set(id, parsed);
  }

  // Liquid's key is `partials:name` or `layouts:name`.
  #toPartialKey(key: string): string {
    const [kind = "", name = ""] = key.split(":");
    return `${kind}:${this.#partials.get(name)?.id ?? name}`;
  }

  #findPartial(id: string): string | undefined {
    for (const partial of this.#partials.values()) {
      if (partial.id === id) return toStandardSource(partial.source);
    }
    return undefined;
  }
}

/**
 * Returns the names of the partials and layouts that a source uses. Throws TemplateError if a name is not a literal: such a
 * name could be chosen by the data.
 */
export function findReferences(source: string): string[] {
  const names = new Set<string>();
  for (const { 1: double, 2: single, 3: bare, index } of source.matchAll(REFERENCE)) {
    if (bare !== undefined && bare !== "none") {
      throw new TemplateError(
        "syntax",
        `the name of a partial must be quoted: ${bare.slice(0, 64)}`,
        { place: placeOf(source, index) },
      );
    }
    const name = double ?? single;
    if (name !== undefined) names.add(name);
  }
  return [...names];
}

function isPlainSegment(segment: unknown): segment is string | number {
  return typeof segment === "string" || typeof segment === "number";
}

function placeOf(source: string, index: number): TemplatePlace {
  const before = source.slice(0, index);
  return { line: before.split("\n").length, column: index - before.lastIndexOf("\n") };
}

// Errors of Liquid have the token at which they occurred; its file is the id of a partial.
function findPlace(
  error: unknown,
  partials: TemplateSource["partials"] | undefined,
): TemplatePlace | undefined {
  const { token } = error as { token?: { file?: string; getPosition?: () => [number, number] } };
  if (typeof token?.getPosition !== "function") return undefined;
  const [line, column] = token.getPosition();
  const named = [...(partials ?? [])].find(([, { id }]) => id === token.file);
  return { line, column, partial: named?.[0] };
}

function toTemplateError(error: unknown, partials?: TemplateSource["partials"]): TemplateError {
  if (error instanceof TemplateError) return error;
  if (error instanceof RangeError) {
    return new TemplateError("limit", "partials are nested too deeply", { cause: error });
  }
  const message = error instanceof Error ? error.message : String(error);
  if (/limit exceeded/.test(message)) {
    const what = /memory/.test(message) ? "memory" : /parse/.test(message) ? "length" : "time";
    return new TemplateError("limit", `the template exceeds its limit of ${what}`, {
      cause: error,
      limit: what,
    });
  }
  if (/Maximum call stack/.test(message)) {
    return new TemplateError("limit", "partials are nested too deeply", { cause: error });
  }
  const kind =
    error instanceof Error && /Parse|Tokenization/.test(error.name) ? "syntax" : "render";
  const place = error instanceof Error ? findPlace(error, partials) : undefined;
  return new TemplateError(kind, message.replaceAll(/, file:[^,]*/g, ""), { cause: error, place });
}
