// Keys of outputs, made from the key of their source: `thumbs/{stem}.png`.
import { S3Error } from "../model/s3-error.ts";

const PLACES = ["key", "dir", "name", "stem", "ext", "version"] as const;

type Place = (typeof PLACES)[number];

/** Throws InvalidArgument for a template with an unknown place. */
export function checkTemplate(template: string): void {
  for (const part of splitTemplate(template)) {
    if (part.place !== undefined && !isPlace(part.place)) {
      throw new S3Error(
        "InvalidArgument",
        `The key ${JSON.stringify(template.slice(0, 128))} names {${part.place.slice(0, 32)}}; there are ${PLACES.map((name) => `{${name}}`).join(" ")}.`,
      );
    }
  }
}

/**
 * The key that a template gives for a source. `{dir}` ends with a slash or is empty, `{ext}` begins with a dot or is empty, and
 * `{stem}` is the name without it. Throws InvalidArgument if a part of the source would leave the folder of the template.
 */
export function fillTemplate(template: string, key: string, version: string): string {
  const slash = key.lastIndexOf("/") + 1;
  const name = key.slice(slash);
  const dot = name.lastIndexOf(".");
  const stem = dot > 0 ? name.slice(0, dot) : name;
  const values: Record<Place, string> = {
    key,
    dir: key.slice(0, slash),
    name,
    stem,
    ext: name.slice(stem.length),
    version,
  };
  const parts = splitTemplate(template);
  const filled = parts.map(({ text, place }) =>
    place !== undefined && isPlace(place) ? values[place] : text,
  );
  const isLeaving = parts.some(
    ({ place }, index) =>
      place !== undefined &&
      filled[index]!.split("/").some((segment) => segment === ".." || segment === "."),
  );
  if (isLeaving) {
    throw new S3Error(
      "InvalidArgument",
      "The key of the source would leave the folder of the target.",
    );
  }
  return filled.join("");
}

interface TemplatePart {
  readonly text: string;
  readonly place: string | undefined;
}

function splitTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  for (let at = 0; at < template.length;) {
    const open = template.indexOf("{", at);
    const close = open < 0 ? -1 : template.indexOf("}", open);
    if (close < 0) {
      parts.push({ text: template.slice(at), place: undefined });
      break;
    }
    if (open > at) parts.push({ text: template.slice(at, open), place: undefined });
    parts.push({ text: "", place: template.slice(open + 1, close) });
    at = close + 1;
  }
  return parts;
}

function isPlace(name: string): name is Place {
  return PLACES.some((place) => place === name);
}
