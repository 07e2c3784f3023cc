// Rendering all parts of a template, on the main thread or on another one.
import {
  TemplateEngine,
  TemplateError,
  type TemplateFormat,
  type TemplateSource,
  type VariablePath,
} from "./engine.ts";
import { toPlainText } from "./plain-text.ts";

/** Parts of a template. */
export const PARTS = ["subject", "html", "text"] as const;

/** A part of a template. */
export type Part = (typeof PARTS)[number];

/** The sources of a template's parts, and the variables. Can be cloned to another thread. */
export interface RenderJob {
  sources: Partial<Record<Part, TemplateSource>>;
  variables: Readonly<Record<string, unknown>>;
  /** True if the paths of the variables are needed. */
  findsVariables?: boolean;
}

/** The result of a job. */
export interface RenderResult {
  parts: RenderedParts;
  /** Values that were left out because they have no text. */
  warnings: string[];
  /** Paths of the variables that the sources use; empty unless they are needed. */
  paths: VariablePath[];
}

export type RenderedParts = Partial<Record<Part, string>>;

/** Limits of a job. */
export interface JobLimits {
  /** Time for all parts. */
  ms: number;
  /** Maximum length of HTML from which the missing text is generated. */
  plainTextCharacters: number;
}

/** The part that failed, with the TemplateError as its cause. */
export class PartError extends Error {
  readonly part: Part;
  override readonly cause: TemplateError;

  constructor(part: Part, cause: TemplateError) {
    super(cause.message, { cause });
    this.name = "PartError";
    this.part = part;
    this.cause = cause;
  }
}

/** Returns the format of a part. */
export function formatOf(part: Part): TemplateFormat {
  return part === "html" ? "html" : "text";
}

/** Renders jobs with its own engines. Not reentrant: every call is synchronous. */
export class JobRenderer {
  readonly engines: Readonly<Record<TemplateFormat, TemplateEngine>> = {
    html: new TemplateEngine("html"),
    text: new TemplateEngine("text"),
  };

  /** Returns the paths of the variables of all parts. Throws PartError. */
  findVariables({ sources }: RenderJob): VariablePath[] {
    return PARTS.flatMap((part) => {
      const source = sources[part];
      if (source === undefined) return [];
      try {
        return this.engines[formatOf(part)].findVariables(source);
      } catch (error) {
        throw error instanceof TemplateError ? new PartError(part, error) : error;
      }
    });
  }

  /** Renders all parts; a missing text is generated from the HTML. Throws PartError. */
  render({ sources, variables }: RenderJob, limits: JobLimits): Omit<RenderResult, "paths"> {
    const warnings = new Set<string>();
    const endsAt = performance.now() + limits.ms;
    const rendered: RenderedParts = {};
    for (const part of PARTS) {
      const source = sources[part];
      if (source === undefined) continue;
      try {
        const leftMs = endsAt - performance.now();
        const engine = this.engines[formatOf(part)];
        rendered[part] = engine.render(source, variables, leftMs);
        for (const one of engine.warnings) warnings.add(`${part}: ${one}`);
      } catch (error) {
        throw error instanceof TemplateError ? new PartError(part, error) : error;
      }
    }
    const { html } = rendered;
    const result = { parts: rendered, warnings: [...warnings] };
    if (sources.text !== undefined || html === undefined) return result;
    if (html.length > limits.plainTextCharacters) throw new PartError("text", timeError());
    return { ...result, parts: { ...rendered, text: toPlainText(html) } };
  }
}

function timeError(): TemplateError {
  return new TemplateError("limit", "the template exceeds its limit of time", { limit: "time" });
}
