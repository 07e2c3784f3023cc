// Path templates of OpenAPI documents, such as `/files/{name}.{type}`.
import { RE2JS } from "re2js";

/** A segment: its text, null for a parameter, or an expression for text with parameters in it. */
export type Segment = string | null | RE2JS;

const PARAMETER = /\{([^{}]+)\}/g;

/** The segments of a template, and the names of its parameters in order. */
export function parseTemplate(path: string): { segments: Segment[]; names: string[] } {
  const parts = path.split("/").slice(1);
  return {
    segments: parts.map(parseSegment),
    names: Array.from(path.matchAll(PARAMETER), ([, name = ""]) => name),
  };
}

/** The values of a template's parameters in a path of decoded segments; undefined if it is not of the template. */
export function matchSegments(
  template: readonly Segment[],
  segments: readonly string[],
): string[] | undefined {
  if (template.length !== segments.length) return undefined;
  const values: string[] = [];
  for (const [index, part] of template.entries()) {
    const text = segments[index]!;
    if (typeof part === "string") {
      if (part !== text) return undefined;
    } else if (part === null) {
      if (text === "") return undefined;
      values.push(text);
    } else {
      const matcher = part.matcher(text);
      if (!matcher.matches()) return undefined;
      for (let group = 1; group <= matcher.groupCount(); group++)
        values.push(matcher.group(group) ?? "");
    }
  }
  return values;
}

/** Concrete paths come first: a parameter counts twice as much as a part of a segment. */
export function countParameters(template: readonly Segment[]): number {
  return template.reduce(
    (count, part) => count + (part === null ? 2 : typeof part === "string" ? 0 : 1),
    0,
  );
}

function parseSegment(part: string): Segment {
  if (/^\{[^{}]+\}$/.test(part)) return null;
  const literals = part.split(PARAMETER).filter((_, index) => index % 2 === 0);
  if (literals.length === 1) return decodeLiteral(part);
  const quoted = literals.map((each) => RE2JS.quote(decodeLiteral(each)));
  return RE2JS.compile(quoted.join("(.+?)"), RE2JS.DOTALL);
}

function decodeLiteral(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
