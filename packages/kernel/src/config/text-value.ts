// Converts texts from the environment and from flags to values.
import { listTypes, type Shape } from "./shape.ts";

const NUMBER = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$/;
const TRUE = new Set(["true", "yes", "on", "1"]);
const FALSE = new Set(["false", "no", "off", "0"]);

/**
 * Converts a text to a value. Lists are separated by commas or written as JSON; objects are JSON. A text of no matching
 * type is returned unchanged, so that the schema's message shows it.
 */
export function readTextValue(text: string, shapes: readonly Shape[]): unknown {
  const types = listTypes(shapes);
  const trimmed = text.trim();
  if (types.has("array")) return readList(trimmed, shapes);
  if (types.has("object") && trimmed.startsWith("{")) return readJsonText(trimmed);
  if ((types.has("number") || types.has("integer")) && NUMBER.test(trimmed)) return Number(trimmed);
  if (types.has("boolean")) {
    if (TRUE.has(trimmed.toLowerCase())) return true;
    if (FALSE.has(trimmed.toLowerCase())) return false;
  }
  return text;
}

function readList(text: string, shapes: readonly Shape[]): unknown {
  if (text.startsWith("[")) return readJsonText(text);
  const items = shapes.flatMap((shape) => (shape.items === undefined ? [] : [shape.items]));
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => readTextValue(part, items));
}

function readJsonText(text: string): unknown {
  try {
    return JSON.parse(text, (name, value: unknown) => (name === "__proto__" ? undefined : value));
  } catch {
    return text;
  }
}
