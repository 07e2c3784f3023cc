// Templates of requests to gateways: `{name}` stands for a value, escaped for the place where it is.

/** Places of templates. */
export type TemplatePlace = "url" | "header" | "json" | "form" | "text";

/** A compiled template. */
export type RequestTemplate = (values: Readonly<Record<string, string>>) => string;

const PLACEHOLDER = /\{([a-z_]+)\}/g;
const CONTROL = /\p{Cc}/gu;

/** Compiles a template; throws an Error that names `key` if it uses a name other than these. */
export function compileTemplate(
  key: string,
  source: string,
  place: TemplatePlace,
  names: readonly string[],
): RequestTemplate {
  for (const [, name = ""] of source.matchAll(PLACEHOLDER)) {
    if (names.includes(name)) continue;
    throw new Error(`${key}: unknown placeholder {${name}}; there are ${names.join(", ")}`);
  }
  return (values) =>
    source.replaceAll(PLACEHOLDER, (_, name: string) => escape(values[name]!, place));
}

function escape(value: string, place: TemplatePlace): string {
  switch (place) {
    case "url":
    case "form":
      return encodeURIComponent(value);
    case "json":
      return JSON.stringify(value).slice(1, -1);
    case "header":
      return value.replaceAll(CONTROL, "");
    case "text":
      return value;
    default:
      return place satisfies never;
  }
}
