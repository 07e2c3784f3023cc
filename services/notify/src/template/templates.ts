// Saving and rendering templates.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { findReferences, TemplateError, type TemplateSource, type VariablePath } from "./engine.ts";
import {
  formatOf,
  JobRenderer,
  PartError,
  PARTS,
  type Part,
  type RenderedParts,
  type RenderJob,
  type RenderResult,
} from "./render-job.ts";
import { RenderPool } from "./render-pool.ts";
import type { StoredTemplate, TemplateContent, TemplateStore } from "./store.ts";

/** A rendered template, for the API. */
export const renderedAnswer = z.object({
  subject: z.string(),
  html: z.string().optional(),
  text: z.string().optional(),
  warnings: z.array(z.string()).describe("Missing variables, one sentence each"),
});

/** A rendered template. */
export type Rendered = z.infer<typeof renderedAnswer>;

/** Options of a rendering. */
export interface RenderOptions {
  name: string;
  locale: string | undefined;
  /** Client of the request; "" for the operator. */
  client: string;
  variables: Readonly<Record<string, unknown>>;
  /** Missing variables are an error instead of empty. */
  isStrict: boolean;
}

/** Options of a rendering of an unsaved template. */
export interface DraftOptions extends Omit<RenderOptions, "isStrict"> {
  content: TemplateContent;
}

/** A failed part of a draft, for the API. The place is absent if it is not known. */
export const draftError = z.object({
  part: z.enum(PARTS),
  reason: z.enum(["syntax", "render", "limit"]),
  message: z.string(),
  line: z.int().optional(),
  column: z.int().optional(),
  partial: z.string().optional().describe("Name of the partial; absent for the template itself"),
});

/** A failed part of a draft. */
export type DraftError = z.infer<typeof draftError>;

/** A variant with the partials that it uses, ready to be rendered. */
interface Loaded {
  template: StoredTemplate;
  library: ReadonlyMap<string, StoredTemplate>;
  variables: readonly VariablePath[];
}

const DRAFT_VERSION = 0;
const TEMPLATES_MAX = 10_000;
const LIBRARY_MAX = 64;
const LOADED_MAX = 500;
/** Changes of other nodes are seen after this time. */
const LOADED_MS = 2_000;
const WARNINGS_MAX = 50;
/** Limits of a rendering on the event loop; longer ones are repeated on a thread. */
const LOOP_LIMITS = { ms: 5, plainTextCharacters: 32_768 };
/** For this time, a template that exceeded the limits is rendered on a thread without another attempt. */
const SLOW_MS = 10_000;
const SLOW_MAX = 1_000;
const POOL = { threadsMax: 2, waitingMax: 2_000, waitingPerClientMax: 1_000, replyMs: 10_000 };

/** The templates of the service. */
export class Templates {
  readonly #store: TemplateStore;
  readonly #clock: Clock;
  readonly #renderer = new JobRenderer();
  readonly #pool = new RenderPool(POOL);
  /** End of the time in which a template counts as slow, by id. */
  readonly #slow = new Map<string, number>();
  readonly #loaded = new Map<string, { loaded: Promise<Loaded>; atMs: number }>();

  constructor(store: TemplateStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get store(): TemplateStore {
    return this.#store;
  }

  /**
   * Checks and saves a version; returns its number. Throws `template_failed` for a syntax error, and `precondition_failed`
   * if another version than the expected one is active; 0 expects none.
   */
  async save(
    name: string,
    locale: string,
    content: TemplateContent,
    expectedVersion?: number,
  ): Promise<number> {
    const known = await this.#store.read([name]);
    if (known.length === 0 && (await this.#store.count()) >= TEMPLATES_MAX) {
      throw new PlatformError("conflict", `There are ${TEMPLATES_MAX} templates, the maximum.`);
    }
    // Parses all parts. Partials that do not exist yet are found at the first rendering.
    for (const part of PARTS) {
      const source = content[part];
      if (source === null) continue;
      try {
        findReferences(source);
        this.#renderer.engines[formatOf(part)].check(source);
      } catch (error) {
        throw toProblem(error, { name }, part);
      }
    }
    const saved = await this.#store.save(name, locale, content, expectedVersion);
    this.#loaded.clear();
    return saved;
  }

  /** Deletes a template; false if there is none. */
  async remove(name: string): Promise<boolean> {
    this.#loaded.clear();
    return this.#store.remove(name);
  }

  /** Renders a template. Throws `not_found` or `template_failed`. */
  async render({
    name,
    locale = "",
    client,
    variables,
    isStrict,
  }: RenderOptions): Promise<Rendered> {
    const loaded = await this.#load(name, locale);
    const missing = loaded.variables.filter((path) => !has(variables, path)).map(formatPath);
    const warnings = describeMissing(missing);
    if (isStrict && warnings.length > 0) {
      throw new PlatformError("template_failed", `Template ${name}: ${warnings[0]}.`, {
        fields: { warnings },
      });
    }
    const rendered = await this.#renderParts(loaded, variables, client);
    if (isStrict && rendered.warnings.length > 0) {
      throw new PlatformError("template_failed", `Template ${name}: ${rendered.warnings[0]}.`, {
        fields: { warnings: rendered.warnings },
      });
    }
    const { subject = "", html, text } = rendered.parts;
    warnings.push(...rendered.warnings);
    return { subject: subject.trim(), html, text, warnings };
  }

  /** Renders a template that is not saved, part by part, always on a thread. Rejects with `overloaded` only. */
  async renderDraft({ name, locale = "", client, variables, content }: DraftOptions) {
    const draft = {
      ...content,
      name,
      locale,
      version: DRAFT_VERSION,
      created_at: 0,
      updated_at: 0,
    };
    const used = PARTS.filter((part) => draft[part] !== null);
    const parts = await Promise.all(
      used.map((part) => this.#renderDraftPart(draft, part, { client, variables })),
    );
    const rendered: RenderedParts = Object.assign({}, ...parts.map((one) => one.parts));
    const paths = parts.flatMap((one) => one.paths);
    const missing = paths.filter((path) => !has(variables, path)).map(formatPath);
    return {
      subject: (rendered.subject ?? "").trim(),
      html: rendered.html,
      text: rendered.text,
      variables: [...new Set(paths.map(formatPath))].sort(),
      warnings: [...describeMissing(missing), ...parts.flatMap((one) => one.warnings)],
      errors: parts.flatMap(({ error }) => error ?? []),
    };
  }

  async #renderDraftPart(
    draft: StoredTemplate,
    part: Part,
    { client, variables }: Pick<DraftOptions, "client" | "variables">,
  ): Promise<RenderResult & { error?: DraftError }> {
    // Without a text, the job of the HTML generates it.
    const alone = { ...draft, subject: "", html: null, text: null, [part]: draft[part] };
    try {
      const library = await this.#readLibrary(alone, draft.locale);
      const sources = { [part]: toSource(draft, library, part) };
      const result = await this.#pool.render(client, { sources, variables, findsVariables: true });
      const { text, ...parts } = result.parts;
      const isWanted = part === "text" || draft.text === null;
      return { ...result, parts: isWanted && text !== undefined ? { ...parts, text } : parts };
    } catch (error) {
      return { parts: {}, warnings: [], paths: [], error: toDraftError(error, part) };
    }
  }

  /** Ends the threads. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Returns the names of the variables of a template, such as `user.name`. */
  async listVariables(name: string, locale: string): Promise<string[]> {
    const { variables } = await this.#load(name, locale);
    return [...new Set(variables.map(formatPath))].sort();
  }

  async #renderParts(
    { template, library }: Loaded,
    variables: Readonly<Record<string, unknown>>,
    client: string,
  ): Promise<Omit<RenderResult, "paths">> {
    const used = PARTS.filter((part) => template[part] !== null);
    const sources = Object.fromEntries(
      used.map((part) => [part, toSource(template, library, part)]),
    );
    const id = toId(template, "html");
    try {
      const rendered = this.#renderOnLoop(id, { sources, variables });
      return rendered ?? (await this.#pool.render(client, { sources, variables }));
    } catch (error) {
      if (error instanceof PartError) throw toProblem(error.cause, template, error.part);
      throw error;
    }
  }

  // Undefined if the rendering takes long.
  #renderOnLoop(id: string, job: RenderJob): Omit<RenderResult, "paths"> | undefined {
    const nowMs = this.#clock.monotonicMs();
    if ((this.#slow.get(id) ?? 0) > nowMs) return undefined;
    try {
      return this.#renderer.render(job, LOOP_LIMITS);
    } catch (error) {
      if (!(error instanceof PartError) || error.cause.limit !== "time") throw error;
      if (this.#slow.size >= SLOW_MAX) this.#slow.clear();
      this.#slow.set(id, nowMs + SLOW_MS);
      return undefined;
    }
  }

  async #load(name: string, locale: string): Promise<Loaded> {
    const key = `${name}\n${locale}`;
    const known = this.#loaded.get(key);
    const nowMs = this.#clock.monotonicMs();
    if (known !== undefined && nowMs - known.atMs < LOADED_MS) return known.loaded;
    if (this.#loaded.size >= LOADED_MAX) this.#loaded.clear();
    const loaded = this.#read(name, locale);
    this.#loaded.set(key, { loaded, atMs: nowMs });
    loaded.catch(() => this.#loaded.delete(key));
    return loaded;
  }

  async #read(name: string, locale: string): Promise<Loaded> {
    const template = chooseVariant(await this.#store.read([name]), locale);
    if (template === undefined) {
      throw new PlatformError("not_found", `There is no template ${name}.`);
    }
    const library = await this.#readLibrary(template, locale);
    const variables: VariablePath[] = [];
    for (const part of PARTS) {
      if (template[part] === null) continue;
      try {
        const source = toSource(template, library, part);
        variables.push(...this.#renderer.engines[formatOf(part)].findVariables(source));
      } catch (error) {
        throw toProblem(error, template, part);
      }
    }
    return { template, library, variables };
  }

  // The partials and layouts that the template uses, directly or through others.
  async #readLibrary(
    template: StoredTemplate,
    locale: string,
  ): Promise<ReadonlyMap<string, StoredTemplate>> {
    const library = new Map<string, StoredTemplate>();
    let wanted = listReferences(template);
    while (wanted.length > 0) {
      if (library.size + wanted.length > LIBRARY_MAX) {
        throw new PlatformError(
          "template_failed",
          `Template ${template.name}: uses more than ${LIBRARY_MAX} partials.`,
        );
      }
      const rows = await this.#store.read(wanted);
      const found = wanted.flatMap((name) => {
        const variants = rows.filter((row) => row.name === name);
        return chooseVariant(variants, locale) ?? [];
      });
      for (const one of found) library.set(one.name, one);
      wanted = [...new Set(found.flatMap(listReferences))].filter((name) => !library.has(name));
    }
    return library;
  }
}

// `de-AT` falls back to `de`, then to the default.
function chooseVariant(
  variants: readonly StoredTemplate[],
  locale: string,
): StoredTemplate | undefined {
  const wanted = locale.toLowerCase();
  const chain = [wanted, wanted.split("-")[0]!, ""];
  for (const one of chain) {
    const found = variants.find((variant) => variant.locale.toLowerCase() === one);
    if (found !== undefined) return found;
  }
  return undefined;
}

function listReferences(template: StoredTemplate): string[] {
  try {
    return [...new Set(PARTS.flatMap((part) => findReferences(template[part] ?? "")))];
  } catch (error) {
    throw toProblem(error, template, "html");
  }
}

// In text and subjects a partial's text is used; a partial without one has only markup, or is the same for both.
function toSource(
  template: StoredTemplate,
  library: ReadonlyMap<string, StoredTemplate>,
  part: Part,
): TemplateSource {
  const partials = new Map(
    Array.from(library, ([name, partial]) => {
      const kind = part === "html" ? "html" : partial.text === null ? "html" : "text";
      return [name, { id: toId(partial, kind), source: partial[kind] ?? partial.text ?? "" }];
    }),
  );
  return { id: toId(template, part), source: template[part] ?? "", partials };
}

function toId({ name, locale, version }: StoredTemplate, part: Part): string {
  if (version === DRAFT_VERSION) return "";
  return `${name}/${locale}@${version}.${part}`;
}

function has(variables: unknown, path: VariablePath): boolean {
  let value = variables;
  for (const segment of path) {
    if (typeof value !== "object" || value === null) return false;
    // Liquid's own members of lists and texts.
    if (segment === "size" || segment === "first" || segment === "last") return true;
    if (!Object.hasOwn(value, segment)) return false;
    value = (value as Record<string | number, unknown>)[segment];
  }
  return value !== undefined && value !== null;
}

function describeMissing(missing: readonly string[]): string[] {
  return [...new Set(missing)]
    .slice(0, WARNINGS_MAX)
    .map((path) => `the variable ${path} is missing`);
}

function formatPath(path: VariablePath): string {
  return path.join(".");
}

function toProblem(error: unknown, { name }: { name: string }, part: Part): unknown {
  if (!(error instanceof TemplateError)) return error;
  return new PlatformError("template_failed", `Template ${name}, ${part}: ${error.message}.`, {
    fields: { template: name, part, reason: error.kind },
    cause: error,
  });
}

function toDraftError(error: unknown, part: Part): DraftError {
  const cause = error instanceof PartError || error instanceof PlatformError ? error.cause : error;
  if (cause instanceof TemplateError) {
    return { part, reason: cause.kind, message: cause.message, ...cause.place };
  }
  if (!(error instanceof PlatformError) || error.code !== "template_failed") throw error;
  return { part, reason: "limit", message: error.detail };
}
