// The router: finds the route of a request by method and path.
import { parsePath, type Segment } from "./path.ts";

/** The parts of a route that the router reads. */
export interface Routable {
  readonly method: string;
  readonly path: string;
  /** Position of its declaration, for messages; "" if unknown. */
  readonly declaredAt: string;
}

/** Result of a search. */
export type Match<R> =
  | { readonly kind: "found"; readonly route: R; readonly params: Readonly<Record<string, string>> }
  /** The path exists with other methods: 405, or the answer to OPTIONS. */
  | { readonly kind: "other-methods"; readonly allow: string }
  | { readonly kind: "none" }
  /** A parameter is not valid UTF-8. */
  | { readonly kind: "malformed" };

interface Leaf<R> {
  readonly routes: Map<string, Entry<R>>;
  /** Value of the Allow field. */
  allow: string;
}

interface Entry<R> {
  readonly route: R;
  readonly names: readonly string[];
}

interface Node<R> {
  readonly texts: Map<string, Node<R>>;
  param: Node<R> | undefined;
  rest: Leaf<R> | undefined;
  leaf: Leaf<R> | undefined;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze(
  Object.create(null) as Record<string, string>,
);
const NONE = { kind: "none" } as const;

/**
 * Routes by path. A text segment wins over a parameter, a parameter over `*`, each segment from left to right; the
 * order of declaration does not matter.
 */
export class Router<R extends Routable> {
  readonly #root: Node<R> = createNode();
  /** Paths without parameters, which need no walk. */
  readonly #plain = new Map<string, Leaf<R>>();

  /** Adds a route. Throws if a route with the same method and the same paths exists. */
  add(route: R): void {
    const segments = parsePath(route.path);
    const names = segments.flatMap(nameOf);
    const leaf = this.#findLeaf(segments);
    const other = leaf.routes.get(route.method);
    if (other !== undefined) throw new TypeError(describeDuplicate(route, other.route));
    leaf.routes.set(route.method, { route, names });
    leaf.allow = listMethods(leaf);
    if (names.length === 0) this.#plain.set(route.path, leaf);
  }

  /** Finds the route of a request; `path` is percent-encoded, without the query. HEAD is served by GET. */
  find(method: string, path: string): Match<R> {
    const plain = this.#plain.get(path);
    const plainEntry = plain && pick(plain, method);
    if (plainEntry) return { kind: "found", route: plainEntry.route, params: NO_PARAMS };
    const values: string[] = [];
    const leaf = walk(this.#root, path, 1, values, method);
    if (leaf !== undefined) return readParams(pick(leaf, method)!, values);
    const others = walk(this.#root, path, 1, [], undefined);
    return others === undefined ? NONE : { kind: "other-methods", allow: others.allow };
  }

  #findLeaf(segments: readonly Segment[]): Leaf<R> {
    let node = this.#root;
    for (const segment of segments) {
      switch (segment.kind) {
        case "text": {
          let next = node.texts.get(segment.text);
          if (next === undefined) node.texts.set(segment.text, (next = createNode()));
          node = next;
          break;
        }
        case "param":
          node = node.param ??= createNode();
          break;
        case "rest":
          return (node.rest ??= createLeaf());
        default:
          segment satisfies never;
      }
    }
    return (node.leaf ??= createLeaf());
  }
}

/** Finds the best leaf below a node; with a method, only leaves that serve it. `values` receives the raw parameters. */
function walk<R>(
  node: Node<R>,
  path: string,
  start: number,
  values: string[],
  method: string | undefined,
): Leaf<R> | undefined {
  const serves = (leaf: Leaf<R> | undefined): leaf is Leaf<R> =>
    leaf !== undefined && (method === undefined || pick(leaf, method) !== undefined);
  if (start > path.length) return serves(node.leaf) ? node.leaf : undefined;
  const slash = path.indexOf("/", start);
  const end = slash === -1 ? path.length : slash;
  const part = path.slice(start, end);
  const text = node.texts.get(part);
  const below = text && walk(text, path, end + 1, values, method);
  if (below !== undefined) return below;
  if (node.param !== undefined && part !== "") {
    const { length } = values;
    values.push(part);
    const found = walk(node.param, path, end + 1, values, method);
    if (found !== undefined) return found;
    values.length = length;
  }
  if (!serves(node.rest)) return undefined;
  values.push(path.slice(start));
  return node.rest;
}

function pick<R>(leaf: Leaf<R>, method: string): Entry<R> | undefined {
  return leaf.routes.get(method) ?? (method === "HEAD" ? leaf.routes.get("GET") : undefined);
}

function readParams<R>({ route, names }: Entry<R>, values: readonly string[]): Match<R> {
  const params = Object.create(null) as Record<string, string>;
  for (const [index, name] of names.entries()) {
    const value = values[index]!;
    try {
      params[name] = value.includes("%") ? decodeURIComponent(value) : value;
    } catch {
      return { kind: "malformed" };
    }
  }
  return { kind: "found", route, params };
}

function nameOf(segment: Segment): string[] {
  if (segment.kind === "text") return [];
  return [segment.kind === "param" ? segment.name : "*"];
}

function createNode<R>(): Node<R> {
  return { texts: new Map(), param: undefined, rest: undefined, leaf: undefined };
}

function createLeaf<R>(): Leaf<R> {
  return { routes: new Map(), allow: "" };
}

function listMethods<R>({ routes }: Leaf<R>): string {
  const methods = new Set([...routes.keys(), "OPTIONS"]);
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods].sort().join(", ");
}

function describeDuplicate(route: Routable, other: Routable): string {
  const at = other.declaredAt === "" ? "" : ` at ${other.declaredAt}`;
  const same = other.path === route.path ? "" : `, as ${other.path}`;
  return `route ${route.method} ${route.path} is declared twice: it exists${at}${same}`;
}
