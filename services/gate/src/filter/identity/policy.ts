// Evaluates policies: the first rule that matches a request decides.
import type { FieldBlock } from "@platform/http1";
import type { PolicyRule } from "../../shared-state/index.ts";

/** The parts of a request that rules look at. */
export interface PolicyRequest {
  /** In upper case. */
  method: string;
  /** Normalized. */
  path: string;
  fields: FieldBlock;
}

interface CompiledRule {
  effect: "allow" | "deny";
  methods: readonly string[] | undefined;
  matchesPath: (path: string) => boolean;
  header: PolicyRule["header"];
}

/** A compiled policy. */
export class Policy {
  readonly #rules: readonly CompiledRule[];

  constructor(rules: readonly PolicyRule[]) {
    this.#rules = rules.map(({ effect, methods, path, header }) => ({
      effect,
      methods,
      matchesPath: path === undefined ? () => true : compilePattern(path),
      header,
    }));
  }

  /** The effect of the first matching rule; undefined if no rule matches. */
  decide(request: PolicyRequest): "allow" | "deny" | undefined {
    return this.#rules.find((rule) => matches(rule, request))?.effect;
  }
}

function matches(rule: CompiledRule, { method, path, fields }: PolicyRequest): boolean {
  return hasMethod(rule, method) && rule.matchesPath(path) && hasHeader(rule, fields);
}

// HEAD asks for the head of the response to GET: a rule for GET is one for both, as in `methods` of routes.
function hasMethod({ methods }: CompiledRule, method: string): boolean {
  if (methods === undefined || methods.includes(method)) return true;
  return method === "HEAD" && methods.includes("GET");
}

function hasHeader({ effect, header }: CompiledRule, fields: FieldBlock): boolean {
  if (header === undefined) return true;
  const value = fields.find(header.name);
  if (value === header.equals) return true;
  // Upstreams read one line of a repeated field: another line must not hide the one that is denied.
  if (effect === "allow" || value === undefined) return false;
  return value.split(",").some((part) => part.trim() === header.equals);
}

/** Compiles a pattern in which `*` matches any characters. Each `*` costs one search, so that the time is bounded. */
function compilePattern(pattern: string): (path: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (path) => path === pattern;
  return (path) => {
    if (!path.startsWith(first)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = path.indexOf(piece, at);
      if (found === -1) return false;
      at = found + piece.length;
    }
    return path.length - at >= last.length && path.endsWith(last);
  };
}
