// Bounds of a JSON Schema, so that validating a payload takes time in proportion to its size.
import { PlatformError } from "@platform/kernel/errors";

/** Subschemas of a schema after its references are expanded. */
const NODES_MAX = 5_000;
const DEPTH_MAX = 64;
const REFUSED = ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$async"];

type Node = Readonly<Record<string, unknown>>;

/**
 * Throws `validation_failed` for external or circular references, and for schemas that grow too large when references are
 * expanded. A `new` one must not have the name `__proto__`, which those that are stored may have.
 */
export function checkSchemaBounds(schema: Node, origin: "new" | "stored"): void {
  let nodes = 0;
  const visit = (value: unknown, depth: number, following: readonly string[]): void => {
    if (typeof value !== "object" || value === null) return;
    nodes++;
    if (nodes > NODES_MAX || depth > DEPTH_MAX) throw refuse("it is too large when followed");
    if (Array.isArray(value)) {
      for (const item of value) visit(item, depth + 1, following);
      return;
    }
    const node = value as Node;
    for (const name of REFUSED) {
      if (Object.hasOwn(node, name)) throw refuse(`${name} is not supported`);
    }
    // The compiler ignores the name: a payload could have any value there.
    if (origin === "new" && Object.hasOwn(node, "__proto__"))
      throw refuse("the name __proto__ is not supported");
    if (typeof node["$ref"] === "string") {
      const name = node["$ref"];
      if (following.includes(name)) throw refuse("its references go in a circle");
      visit(resolve(schema, name), depth + 1, [...following, name]);
    }
    for (const [name, member] of Object.entries(node)) {
      // Definitions count at their references; values of enum and const are not schemas.
      if (name === "$defs" || name === "definitions" || name === "enum" || name === "const")
        continue;
      visit(member, depth + 1, following);
    }
  };
  visit(schema, 0, []);
}

function resolve(schema: Node, reference: string): unknown {
  const found = /^#\/(\$defs|definitions)\/([A-Za-z0-9._-]+)$/.exec(reference);
  const group = found === null ? undefined : schema[found[1]!];
  const isThere = typeof group === "object" && group !== null && Object.hasOwn(group, found![2]!);
  if (!isThere) throw refuse("a $ref has to be #/$defs/<name> of this schema");
  return (group as Node)[found![2]!];
}

function refuse(reason: string): PlatformError {
  return new PlatformError("validation_failed", `The schema is invalid: ${reason}.`);
}
