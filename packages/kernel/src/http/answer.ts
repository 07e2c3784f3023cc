// Bodies of successful responses, as operations declare them.
import { z } from "zod";

/** Successful responses of an operation. */
export interface Success {
  /**
   * Status; default 200, or 204 with `NO_BODY`. If there are several, the first is that of plain values; the others are
   * sent by `StatusAnswer` or in a `Response`.
   */
  readonly status?: number | readonly [number, ...number[]];
  /** Body: a schema of JSON, `bytes(mediaType)`, or `NO_BODY`. */
  readonly answer: BodyAnswer;
}

type BodyAnswer = z.ZodType | BytesAnswer<z.ZodType> | typeof NO_BODY;

/** A body that is not JSON. */
export class BytesAnswer<Json extends z.ZodType = z.ZodNever> {
  readonly mediaType: string;
  /** Schema of the JSON that some requests ask for instead. */
  readonly json: Json | undefined;

  constructor(mediaType: string, json?: Json) {
    this.mediaType = mediaType;
    this.json = json;
  }
}

/**
 * Declares a body that is not JSON. The handler returns text, bytes or a `Response`. With `json`, some requests ask for JSON
 * instead, by a parameter of their query.
 */
export function bytes<Json extends z.ZodType = z.ZodNever>(
  mediaType: string,
  options: { json?: Json } = {},
): BytesAnswer<Json> {
  return new BytesAnswer(mediaType, options.json);
}

/** Declares responses without a body. The handler returns undefined, or a `Response` such as a redirect. */
export const NO_BODY = Symbol("no body");

/** Result of handlers whose JSON response has another status than the first of the route. */
export class StatusAnswer<Body = unknown> {
  readonly status: number;
  readonly body: Body;

  constructor(status: number, body: Body) {
    this.status = status;
    this.body = body;
  }
}

/** Result of handlers that have formatted their JSON themselves, such as lists of stored JSON. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Results of a handler with this answer. */
export type AnswerOf<A> = A extends z.ZodType
  ? Unchanged<z.input<A>> | StatusAnswer<Unchanged<z.input<A>>> | JsonText
  : A extends BytesAnswer<infer Json>
    ? string | Uint8Array | Response | Unchanged<z.input<Json>>
    : A extends typeof NO_BODY
      ? void | Response
      : unknown;

/** The same value with read-only lists: an answer is written, and not changed. */
type Unchanged<T> = T extends readonly (infer Item)[]
  ? readonly Unchanged<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Unchanged<T[Name]> }
    : T;

// Set for test runs that check all answers. In production, no request pays for the check.
const isChecked = process.env["PLATFORM_CHECK_ANSWERS"] === "true";

/** Returns the status and the body of a handler's result, which is not a `Response`. */
export function toStatusAnswer({ answer, status }: Success, result: unknown): StatusAnswer {
  if (result instanceof StatusAnswer) return result;
  const isEmpty = answer === NO_BODY || (answer === undefined && result === undefined);
  const [first = isEmpty ? 204 : 200] = [status ?? []].flat();
  return new StatusAnswer(first, result);
}

/** Formats a JSON body. If answers are checked, throws if it has another shape than declared, or undeclared members. */
export function formatJson(
  { answer, method, path }: Success & { method: string; path: string },
  body: unknown,
): string {
  const json = body instanceof JsonText ? body.text : JSON.stringify(body);
  const schema = answer instanceof BytesAnswer ? answer.json : answer;
  if (!isChecked || !(schema instanceof z.ZodType)) return json;
  const value: unknown = JSON.parse(json);
  const { data, error } = schema.safeParse(value);
  const faults =
    error === undefined
      ? listUndeclared(value, data, "").map((name) => `${name} is not declared`)
      : [z.prettifyError(error)];
  if (faults.length === 0) return json;
  const message = `${method} ${path}: the answer does not match its schema: ${faults.join(", ")}`;
  // The client gets a 500 without details; the output of the test shows the cause.
  process.stderr.write(`${message}\n`);
  throw new TypeError(message);
}

// Schemas drop members that they do not declare.
function listUndeclared(value: unknown, declared: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  const known = (declared ?? {}) as Record<string, unknown>;
  return Object.entries(value).flatMap(([name, inner]) => {
    const place = `${path}.${name}`;
    return name in known ? listUndeclared(inner, known[name], place) : [place];
  });
}
