// Finds the handler of a path for requests that are answered on node's own objects.
import type { IncomingMessage, ServerResponse } from "node:http";

/** A handler of paths. */
export interface NodeHandler {
  /**
   * The handled paths, each with its name in logs and metrics. `{id}` as the last segment of a path matches one segment of
   * the form `idPattern`.
   */
  readonly routes: ReadonlyMap<string, string>;
  /** Any segment by default. */
  readonly idPattern?: RegExp;
  /** Answers a request whose path, without its query, has this route. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse, path: string, route: string): void;
}

/** The handler of a path. */
export interface Match {
  readonly route: string;
  readonly handler: NodeHandler;
}

const ID_SEGMENT = "/{id}";

/** Finds handlers: one lookup for a fixed path, two for a path with an id. */
export class Router {
  readonly #fixed = new Map<string, Match>();
  /** By the path before the id. */
  readonly #withId = new Map<string, Match>();

  /** Throws if two handlers share a path. */
  constructor(handlers: readonly NodeHandler[]) {
    for (const handler of handlers) {
      for (const [path, route] of handler.routes) {
        const hasId = path.endsWith(ID_SEGMENT);
        const matches = hasId ? this.#withId : this.#fixed;
        const key = hasId ? path.slice(0, -ID_SEGMENT.length) : path;
        if (matches.has(key)) throw new Error(`two handlers for ${path}`);
        matches.set(key, { route, handler });
      }
    }
  }

  /** The handler of a path without its query; `undefined` if there is none. */
  find(path: string): Match | undefined {
    const fixed = this.#fixed.get(path);
    if (fixed !== undefined) return fixed;
    const slash = path.lastIndexOf("/");
    const match = this.#withId.get(path.slice(0, slash));
    const isId = match?.handler.idPattern?.test(path.slice(slash + 1)) ?? true;
    return isId ? match : undefined;
  }
}
