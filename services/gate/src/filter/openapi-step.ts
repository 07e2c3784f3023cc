// The validation step: refuses requests that do not conform to the route's OpenAPI document.
import { Framing, Known } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { answerProblem, readMethod } from "../exchange/answers.ts";
import type { GateExchange, Step } from "../exchange/exchange.ts";
import { readPaths } from "../exchange/request-path.ts";
import type { OpenApiSpec, RouteSpec } from "../shared-state/index.ts";
import {
  type BodyRule,
  type FoundOperation,
  isJsonType,
  OpenApiDocument,
} from "./openapi-document.ts";
import type { RequestFinding } from "./openapi-parameter.ts";

/** Larger bodies of checked types are refused: validation holds the thread. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;

/** Checks requests of a route with a document. Throws if the document is not usable. */
export function createOpenApiStep(spec: RouteSpec): Step | undefined {
  const { openapi } = spec.steps;
  return openapi === undefined ? undefined : new OpenApiStep(openapi, spec.bodyBytesMax);
}

class OpenApiStep implements Step {
  readonly #document: OpenApiDocument;
  readonly #allowsUnknown: boolean;
  readonly #bodyBytesMax: number;

  constructor({ document, allowsUnknown }: OpenApiSpec, bodyBytesMax: number) {
    this.#document = new OpenApiDocument(document);
    this.#allowsUnknown = allowsUnknown;
    this.#bodyBytesMax = Math.min(bodyBytesMax, BODY_BYTES_MAX);
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    const [path = "/"] = readPaths(exchange);
    const found = this.#document.find(readMethod(exchange), path);
    if (found === undefined) {
      if (this.#allowsUnknown) return true;
      throw new PlatformError("not_found", "The API has no such operation.");
    }
    const findings = checkParameters(exchange, found);
    const { body } = found.operation;
    if (findings.length > 0) throw createFault(findings);
    return body === undefined ? true : this.#checkBody(exchange, body);
  }

  #checkBody(exchange: GateExchange, rule: BodyRule): boolean | Promise<boolean> {
    const { head } = exchange;
    const isEmpty = head.framing === Framing.Length && head.contentLength === 0;
    if (head.framing === Framing.None || isEmpty) {
      if (rule.isRequired) throw createFault([{ in: "body", path: "", message: "is required" }]);
      return true;
    }
    const type = head.fields.get(Known.ContentType) ?? "";
    const validate = findContent(rule, type);
    if (validate === undefined) {
      throw new PlatformError("unsupported_media_type", "The operation does not accept this type.");
    }
    if (validate === null || !isJsonType(type)) return true;
    return this.#readJson(exchange, validate);
  }

  #readJson(
    exchange: GateExchange,
    validate: NonNullable<ReturnType<typeof findContent>>,
  ): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    exchange.bodyBytesMax = this.#bodyBytesMax;
    exchange.readBody(this.#bodyBytesMax, (_exchange, outcome, body) => {
      switch (outcome) {
        case "aborted":
          resolve(false);
          return;
        case "too-large":
          answerProblem(
            exchange,
            "payload_too_large",
            `The request body is larger than ${this.#bodyBytesMax} bytes.`,
          );
          resolve(false);
          return;
        case "complete": {
          const finding = checkJson(body, validate);
          if (finding === undefined) resolve(true);
          else reject(createFault([finding]));
          return;
        }
        default:
          outcome satisfies never;
      }
    });
    return promise;
  }
}

function checkParameters(
  { head }: GateExchange,
  { operation, values }: FoundOperation,
): RequestFinding[] {
  const { fields } = head;
  return operation.checkParameters({
    path: values,
    query: new URLSearchParams(head.bytes.toString("latin1", head.pathEnd, head.targetEnd)),
    readHeader: (name) => fields.find(name),
    readCookie: (name) => findCookie(fields.get(Known.Cookie) ?? "", name),
  });
}

function checkJson(
  body: Buffer,
  validate: NonNullable<ReturnType<typeof findContent>>,
): RequestFinding | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return { in: "body", path: "", message: "is not JSON" };
  }
  try {
    if (validate(value)) return undefined;
  } catch {
    // A recursive schema and a deep document exhaust the stack.
    return { in: "body", path: "", message: "is too deep" };
  }
  const [error] = validate.errors ?? [];
  const message = error?.message ?? "is not valid";
  return { in: "body", path: error?.instancePath ?? "", message };
}

function findContent({ content }: BodyRule, type: string) {
  const name = (type.split(";")[0] ?? "").trim().toLowerCase();
  const range = `${name.split("/")[0]}/*`;
  for (const key of [name, range, "*/*"]) {
    const found = content.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findCookie(cookie: string, name: string): string | undefined {
  for (const pair of cookie.split(";")) {
    const [key, ...value] = pair.trim().split("=");
    if (key === name) return value.join("=");
  }
  return undefined;
}

function createFault(errors: readonly RequestFinding[]): PlatformError {
  const detail = errors
    .map(({ in: place, path, message }) => `${place}${path === "" ? "" : ` ${path}`}: ${message}`)
    .join("\n");
  return new PlatformError("validation_failed", detail, { fields: { errors } });
}
