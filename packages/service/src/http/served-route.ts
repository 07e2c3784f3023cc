// Routes as the server uses them: with defaults, scopes and metrics.
import type { HttpMetrics, HttpSeries } from "@platform/kernel/metrics";
import type { RouteDefinition, RouteOptions } from "./definition.ts";

/** Bounds that routes inherit. */
export interface RouteDefaults {
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
}

/** A route with its defaults. */
export class ServedRoute {
  readonly method: string;
  readonly path: string;
  readonly options: RouteOptions;
  readonly handler: (request: never) => unknown;
  /** Required scopes; undefined if callers need no token. */
  readonly scopes: readonly string[] | undefined;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
  /** Value that the platform's gateway sends with requests to which it has applied the access rules; undefined without rules. */
  readonly proof: Buffer | undefined;
  readonly #definition: RouteDefinition;
  readonly #series = new Map<string, HttpSeries>();

  constructor(definition: RouteDefinition, defaults: RouteDefaults, proof?: Buffer) {
    const { options } = definition;
    this.#definition = definition;
    this.method = definition.method;
    this.path = definition.path;
    this.options = options;
    this.handler = definition.handler;
    this.proof = proof;
    this.scopes = readScopes(options.requires);
    this.bodyBytesMax = options.bodyBytesMax ?? defaults.bodyBytesMax;
    this.timeoutMs = options.timeoutMs ?? defaults.timeoutMs;
  }

  /** `path:line:column` of the declaration. */
  get declaredAt(): string {
    return this.#definition.declaredAt;
  }

  /** The metrics of an outcome; looked up once per method and status. */
  findSeries(metrics: HttpMetrics, method: string, status: number): HttpSeries {
    const key = `${method} ${status}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = metrics.series(this.path, method, status);
      this.#series.set(key, series);
    }
    return series;
  }
}

function readScopes(requires: RouteOptions["requires"]): readonly string[] | undefined {
  if (requires === undefined) return undefined;
  if (requires === true) return [];
  return typeof requires === "string" ? [requires] : requires;
}
