// Sample values of a template's variables, so that its first preview is not empty.
import type { Template } from "./template.ts";

const ROWS = 2;

type Sample = Record<string, unknown>;

/** Returns the values as JSON: names of variables, and short lists for those that a template goes through. */
export function sampleVariables(template: Pick<Template, "variables" | "html" | "text">): string {
  const source = `${template.html ?? ""}\n${template.text ?? ""}`;
  const sample = createSample();
  for (const path of template.variables) {
    if (path !== "unsubscribe_url") setPath(sample, path.split("."), valueOf(path, source));
  }
  return JSON.stringify(sample, null, 2);
}

// Names are those of a template: without a prototype, `__proto__` is one like any other.
function createSample(): Sample {
  return Object.create(null) as Sample;
}

function setPath(sample: Sample, segments: readonly string[], value: unknown): void {
  const last = segments.at(-1)!;
  let place = sample;
  for (const segment of segments.slice(0, -1)) {
    const known = place[segment];
    const next = isSample(known) ? known : createSample();
    place[segment] = next;
    place = next;
  }
  if (!isSample(place[last])) place[last] = value;
}

function isSample(value: unknown): value is Sample {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// `{% for line in order.lines %}{{ line.title }}` needs a list of objects with `title`.
function valueOf(path: string, source: string): unknown {
  const name = path.split(".").at(-1)!;
  const loop = new RegExp(`\\bfor\\s+(\\w+)\\s+in\\s+${RegExp.escape(path)}(?![\\w.])`).exec(
    source,
  );
  const item = loop?.[1];
  if (item === undefined) return name;
  const row = createSample();
  for (const [, field = ""] of source.matchAll(new RegExp(`\\b${item}\\.(\\w+)`, "g"))) {
    row[field] = field;
  }
  const value = Object.keys(row).length === 0 ? item : row;
  return Array.from({ length: ROWS }, () => value);
}
