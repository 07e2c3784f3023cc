// Positions of SQL templates: an error of the database has no frame of the author, who may not even await the query.
import { markPosition } from "./position.ts";

/** By the strings of a template, one object for each place in the source: a stack costs microseconds, the map nanoseconds. */
const positions = new WeakMap<readonly string[], () => string>();

/** Marks the caller outside this package as the position of a template, at its first evaluation. */
export function markTemplate(strings: readonly string[]): void {
  if (!positions.has(strings)) positions.set(strings, markPosition());
}

/** Adds the position of a template to the stack of an error, as its first frame. */
export function addTemplateFrame(error: unknown, strings: readonly string[], name: string): void {
  const position = positions.get(strings)?.() ?? "";
  if (position === "" || !(error instanceof Error) || !Object.isExtensible(error)) return;
  const { stack = String(error) } = error;
  if (stack.includes(position)) return;
  const at = stack.indexOf("\n    at ");
  const head = at === -1 ? stack : stack.slice(0, at);
  error.stack = `${head}\n    at ${name} (${position})${at === -1 ? "" : stack.slice(at)}`;
}
