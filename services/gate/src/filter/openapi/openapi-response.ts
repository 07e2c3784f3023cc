// Responses of an operation: checked against the document and reported, never changed.
import type { ValidateFunction } from "ajv/dist/2020.js";
import type { ContentFilter, ContentOutput } from "@platform/http1";
import { checkJson, findContent, isJsonType } from "./openapi-body.ts";

/** Larger bodies are not checked: validation holds the thread. */
const BODY_BYTES_MAX = 1_048_576;

/** Schemas by media type or range, in lower case; null for types whose content is not checked. */
type ContentRules = ReadonlyMap<string, ValidateFunction | null>;

/** Responses of an operation by status (`200`), class (`2xx`) or `default`, in lower case. */
export type ResponseRules = ReadonlyMap<string, ContentRules>;

/** The head of a response. */
interface CheckedHead {
  status: number;
  /** Content-Type, "" if absent. */
  type: string;
  hasContent: boolean;
}

/** Outcome of {@link checkHead}: a fault, a schema for the content, or undefined if there is nothing to check. */
type HeadResult = { fault: string } | { validate: ValidateFunction } | undefined;

/** Checks status and media type. */
export function checkHead(rules: ResponseRules, head: CheckedHead): HeadResult {
  if (rules.size === 0) return undefined;
  const { status, type, hasContent } = head;
  const content =
    rules.get(String(status)) ?? rules.get(`${Math.floor(status / 100)}xx`) ?? rules.get("default");
  if (content === undefined) return { fault: `the status ${status} is not in the document` };
  if (!hasContent || content.size === 0) return undefined;
  const validate = findContent(content, type);
  if (validate === undefined) {
    return { fault: `the media type ${type === "" ? "(none)" : type} is not in the document` };
  }
  return validate === null || !isJsonType(type) ? undefined : { validate };
}

/** Options of {@link ResponseCheck}. */
export interface ResponseCheckOptions {
  validate: ValidateFunction;
  onFault: (fault: string) => void;
  /** The body is too large to be checked. */
  onUnchecked: () => void;
}

/** Copies the body of one response on its way, and checks it after it was passed on. */
export class ResponseCheck implements ContentFilter {
  readonly #options: ResponseCheckOptions;
  #pieces: Buffer[] | undefined = [];
  #size = 0;

  constructor(options: ResponseCheckOptions) {
    this.#options = options;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    if (this.#pieces !== undefined) {
      this.#size += bytes.length;
      if (this.#size > BODY_BYTES_MAX) {
        this.#pieces = undefined;
        this.#options.onUnchecked();
      } else this.#pieces.push(Buffer.from(bytes));
    }
    output.write(bytes);
  }

  onEnd(output: ContentOutput): void {
    output.end();
    if (this.#pieces === undefined) return;
    const body = Buffer.concat(this.#pieces);
    this.#pieces = undefined;
    // The client has its response: a long check does not delay it.
    setImmediate(() => {
      const finding = checkJson(body, this.#options.validate);
      if (finding !== undefined)
        this.#options.onFault(`${finding.path || "body"} ${finding.message}`);
    });
  }

  onAbort(): void {
    this.#pieces = undefined;
  }
}
