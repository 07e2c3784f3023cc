// The CORS step: answers preflights, and tells browsers which pages may read responses (https://fetch.spec.whatwg.org).
import { Known, Method } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { isSerializedOrigin } from "@platform/kernel/network";
import { answerWith } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { CorsSpec, RouteSpec } from "../../shared-state/index.ts";

/** It comes before authentication, because browsers send preflights without credentials. */
export function createCorsStep(spec: RouteSpec): Step | undefined {
  return spec.steps.cors === undefined ? undefined : new CorsStep(spec.steps.cors);
}

class CorsStep implements Step {
  readonly #cors: CorsSpec;
  readonly #isAnyOrigin: boolean;
  readonly #exact: ReadonlySet<string>;
  readonly #wildcards: readonly { start: string; end: string }[];
  readonly #preflightFields: readonly [name: string, value: string][];

  constructor(cors: CorsSpec) {
    this.#cors = cors;
    this.#isAnyOrigin = cors.origins.includes("*");
    this.#exact = new Set(cors.origins);
    this.#wildcards = cors.origins.flatMap((origin) => {
      const [start, end] = origin.split("*.");
      return end === undefined || start === "" ? [] : [{ start: start!, end: `.${end}` }];
    });
    this.#preflightFields = [
      ["Access-Control-Allow-Methods", cors.methods.join(", ")],
      ["Access-Control-Allow-Headers", cors.headers.join(", ")],
      ["Access-Control-Max-Age", String(cors.maxAgeSeconds)],
    ];
  }

  run(exchange: GateExchange): boolean {
    const { head, userData } = exchange;
    const { responseFields } = userData;
    if (!this.#isAnyOrigin) responseFields.add("Vary", "Origin");
    const origin = head.fields.get(Known.Origin);
    if (origin === undefined) return true;
    const isPreflight =
      head.methodId === Method.OPTIONS &&
      head.fields.find("access-control-request-method") !== undefined;
    if (!this.#allows(origin)) {
      // Without the fields, a browser keeps the response from the page.
      if (!isPreflight) return true;
      throw new PlatformError("forbidden", "Pages of this origin may not use this route.");
    }
    responseFields.add("Access-Control-Allow-Origin", this.#isAnyOrigin ? "*" : origin);
    if (this.#cors.allowsCredentials) {
      responseFields.add("Access-Control-Allow-Credentials", "true");
    }
    if (isPreflight) {
      answerWith(exchange, { status: 204, headers: [...this.#preflightFields] });
      return false;
    }
    const { exposeHeaders } = this.#cors;
    if (exposeHeaders.length > 0) {
      responseFields.add("Access-Control-Expose-Headers", exposeHeaders.join(", "));
    }
    return true;
  }

  #allows(origin: string): boolean {
    if (this.#isAnyOrigin || this.#exact.has(origin)) return true;
    return this.#wildcards.some(
      ({ start, end }) =>
        origin.length > start.length + end.length &&
        origin.startsWith(start) &&
        origin.endsWith(end) &&
        isSerializedOrigin(origin),
    );
  }
}
