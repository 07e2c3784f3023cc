// The validation step: refuses requests that do not conform to the route's OpenAPI document.
import { type ContentFilter, Framing, Known, type ResponseDraft } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { answerProblem, readMethod } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import { readPaths } from "../../exchange/request-path.ts";
import type { OpenApiSpec, RouteSpec } from "../../shared-state/index.ts";
import {
  checkJson,
  findContent,
  hasForeignCharset,
  isJsonType,
  readTypeName,
  type RequestFinding,
} from "./openapi-body.ts";
import {
  type BodyCheck,
  type BodyRule,
  type FoundOperation,
  OpenApiDocument,
} from "./openapi-document.ts";
import { checkHead, ResponseCheck } from "./openapi-response.ts";
import type { StepParts } from "../step-parts.ts";
import { decodeContent } from "../../recording/body-content.ts";

/** Larger bodies of checked types are refused: validation holds the thread. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
/** Multipart forms contain files: larger ones are passed on unchecked if their length is stated, or else refused. */
const MULTIPART_BYTES_MAX = 10 * 1024 * 1024;

/** Checks requests of a route with a document. Throws if the document is not usable. */
export function createOpenApiStep(spec: RouteSpec): Step | undefined {
  const { openapi } = spec.steps;
  return openapi === undefined ? undefined : new OpenApiStep(openapi, spec.bodyBytesMax);
}

/** Reports responses of the upstream that do not conform to the document, if the route asks for it. */
export function createResponseReportStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { openapi } = spec.steps;
  return openapi?.reportsResponses === true ? new ResponseReportStep(openapi, parts) : undefined;
}

class OpenApiStep implements Step {
  readonly #document: OpenApiDocument;
  readonly #allowsUnknown: boolean;
  readonly #bodyBytesMax: number;
  readonly #multipartBytesMax: number;

  constructor({ document, allowsUnknown }: OpenApiSpec, bodyBytesMax: number) {
    this.#document = new OpenApiDocument(document);
    this.#allowsUnknown = allowsUnknown;
    this.#bodyBytesMax = Math.min(bodyBytesMax, BODY_BYTES_MAX);
    this.#multipartBytesMax = Math.min(bodyBytesMax, MULTIPART_BYTES_MAX);
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    const [path = "/"] = readPaths(exchange);
    const found = this.#document.find(readMethod(exchange), path);
    if (found === undefined) {
      if (this.#allowsUnknown) return true;
      throw this.#refuse(path);
    }
    const findings = checkParameters(exchange, found);
    const { body } = found.operation;
    if (findings.length > 0) throw createFault(findings);
    return body === undefined ? true : this.#checkBody(exchange, body);
  }

  #refuse(path: string): PlatformError {
    const methods = this.#document.listMethods(path);
    if (methods.length === 0) {
      return new PlatformError("not_found", "The API has no such operation.");
    }
    return new PlatformError("method_not_allowed", "The API has other operations at this path.", {
      headers: { Allow: methods.join(", ") },
    });
  }

  #checkBody(exchange: GateExchange, rule: BodyRule): boolean | Promise<boolean> {
    const { head } = exchange;
    const isEmpty = head.framing === Framing.Length && head.contentLength === 0;
    if (head.framing === Framing.None || isEmpty) {
      if (rule.isRequired) throw createFault([{ in: "body", path: "", message: "is required" }]);
      return true;
    }
    const type = head.fields.get(Known.ContentType) ?? "";
    const check = findContent(rule.content, type);
    if (check === undefined) {
      throw new PlatformError("unsupported_media_type", "The operation does not accept this type.");
    }
    const inspect = check === null ? undefined : chooseInspection(check, type);
    if (inspect === undefined) return true;
    if (hasForeignCharset(type)) {
      throw new PlatformError("unsupported_media_type", "The charset must be UTF-8.");
    }
    if (!isMultipart(type)) return this.#readBody(exchange, inspect, this.#bodyBytesMax);
    const isLarge = head.framing === Framing.Length && head.contentLength > this.#multipartBytesMax;
    return isLarge || this.#readBody(exchange, inspect, this.#multipartBytesMax);
  }

  #readBody(exchange: GateExchange, inspect: Inspection, bytesMax: number): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const coding = exchange.head.fields.find("content-encoding") ?? "";
    const { sequence } = exchange;
    exchange.bodyBytesMax = bytesMax;
    exchange.readBody(bytesMax, (_exchange, outcome, body) => {
      switch (outcome) {
        case "aborted":
          resolve(false);
          return;
        case "too-large":
          answerProblem(
            exchange,
            "payload_too_large",
            `The request body is larger than ${bytesMax} bytes.`,
          );
          resolve(false);
          return;
        case "complete": {
          if (coding === "") settle(inspect(body));
          else inspectCoded(body, coding, inspect, bytesMax).then(settle, reject);
          return;
        }
        default:
          outcome satisfies never;
      }
    });
    return promise;

    function settle(finding: RequestFinding | undefined): void {
      if (exchange.sequence !== sequence || exchange.aborted) resolve(false);
      else if (finding === undefined) resolve(true);
      else reject(createFault([finding]));
    }
  }
}

// The upstream gets the body as it was sent.
async function inspectCoded(
  content: Buffer,
  coding: string,
  inspect: Inspection,
  bytesMax: number,
): Promise<RequestFinding | undefined> {
  const fields: [string, string][] = [["Content-Encoding", coding]];
  // The bytes belong to the connection.
  const plain = await decodeContent({ fields, content: Buffer.from(content) }, bytesMax);
  if (plain !== undefined) return inspect(plain);
  const message = `cannot be read without its Content-Encoding in ${bytesMax} bytes`;
  return { in: "body", path: "", message };
}

type Inspection = (body: Buffer) => RequestFinding | undefined;

function chooseInspection(check: NonNullable<BodyCheck>, type: string): Inspection | undefined {
  if ("json" in check) {
    return isJsonType(type) ? (body) => checkJson(body, check.json) : undefined;
  }
  return isMultipart(type)
    ? (body) => check.form.checkMultipart(body, type)
    : (body) => check.form.checkEncoded(body);
}

function isMultipart(type: string): boolean {
  return readTypeName(type) === "multipart/form-data";
}

class ResponseReportStep implements Step {
  readonly #document: OpenApiDocument;
  readonly #parts: StepParts;

  constructor({ document }: OpenApiSpec, parts: StepParts) {
    this.#document = new OpenApiDocument(document);
    this.#parts = parts;
  }

  run(): boolean {
    return true;
  }

  filterResponse(exchange: GateExchange, draft: ResponseDraft): readonly ContentFilter[] {
    const [path = "/"] = readPaths(exchange);
    const operation = this.#document.find(readMethod(exchange), path)?.operation;
    if (operation === undefined) return [];
    const readField = (wanted: string): string =>
      draft.headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? "";
    const { status, hasContent } = draft;
    // A status that the gateway's own conditions can cause has no content to describe.
    if (status === 304) return [];
    const type = readField("content-type");
    const result = checkHead(operation.responses, { status, type, hasContent });
    const onFault = (fault: string): void => {
      this.#parts.block.addCounter("responseViolations", 1);
      this.#parts.onGuardError(
        "a response does not conform to the OpenAPI document",
        operation.title,
        `status ${status}: ${fault}`,
      );
    };
    const onUnchecked = (): void => this.#parts.block.addCounter("responsesUnchecked", 1);
    if (result === undefined) return [];
    if ("fault" in result) {
      onFault(result.fault);
      return [];
    }
    if (!/^(?:identity)?$/i.test(readField("content-encoding"))) {
      onUnchecked();
      return [];
    }
    return [new ResponseCheck({ validate: result.validate, onFault, onUnchecked })];
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
    readCookies: (name) => listCookies(fields.get(Known.Cookie) ?? "", name),
  });
}

function listCookies(cookie: string, name: string): string[] {
  return cookie.split(";").flatMap((pair) => {
    const [key, ...value] = pair.trim().split("=");
    return key === name ? [decodeCookie(value.join("="))] : [];
  });
}

// The style form encodes by percent; values of other origins need not.
function decodeCookie(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function createFault(errors: readonly RequestFinding[]): PlatformError {
  const detail = errors
    .map(({ in: place, path, message }) => `${place}${path === "" ? "" : ` ${path}`}: ${message}`)
    .join("\n");
  return new PlatformError("validation_failed", detail, { fields: { errors } });
}
