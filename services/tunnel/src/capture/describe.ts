// Captured requests as the API and the inspector show them: parsed, with credentials hidden.
import { z } from "zod";
import { readStatus, type CapturedRequest } from "./captured-request.ts";
import {
  decompress,
  find,
  parseRequest,
  parseResponse,
  statusOf,
  type Field,
  type Message,
} from "./message.ts";
import { redactField, redactPath, redactText } from "./redact.ts";

/** A captured request in lists. */
export const summarySchema = z.object({
  id: z.string(),
  method: z.string(),
  path: z.string().meta({ description: "Path with query; credentials are hidden." }),
  status: z.int().meta({ description: "0 before a response." }),
  latency_ms: z.int(),
  timestamp: z.string().meta({ description: "ISO 8601 UTC." }),
  state: z.enum(["open", "complete", "broken"]).meta({
    description: "broken: one side broke off.",
  }),
  client: z.string().meta({ description: "Address of the public client." }),
  error: z.string().meta({
    description: "Code of the relay's own answer; empty if the local service answered.",
  }),
  request_bytes: z.int(),
  response_bytes: z.int(),
  replay_of: z.string().optional().meta({ description: "Id of the replayed request." }),
});

const contentSchema = z.object({
  /** UTF-8, or base64 for other content. */
  encoding: z.enum(["utf8", "base64"]),
  text: z.string(),
  bytes: z.int().meta({ description: "Size of the captured part." }),
  truncated: z.boolean(),
  decoded: z.string().optional().meta({ description: "Content-Encoding that was removed." }),
});

const messageSchema = {
  headers: z.array(z.tuple([z.string(), z.string()])),
  body: contentSchema,
};

/** A captured request with its messages. */
export const detailSchema = summarySchema.extend({
  request: z.object({ line: z.string(), ...messageSchema }).nullable(),
  response: z
    .object({ line: z.string(), status: z.int(), reason: z.string(), ...messageSchema })
    .nullable(),
});

/** A captured request in lists. */
export type Summary = z.input<typeof summarySchema>;
/** A captured request with its messages. */
export type Detail = z.input<typeof detailSchema>;

/** Describes a request for lists. `nowMs` is the calendar time. */
export function summarize(entry: CapturedRequest, nowMs: number): Summary {
  const { begun, end } = entry;
  return {
    id: entry.id,
    method: begun.method,
    path: redactPath(begun.path),
    status: end?.status ?? readStatus(entry.response.bytes),
    latency_ms: Math.max(0, Math.round(end?.latencyMs ?? nowMs - begun.startedAt)),
    timestamp: new Date(begun.startedAt).toISOString(),
    state: end === undefined ? "open" : end.isComplete ? "complete" : "broken",
    client: begun.client,
    error: end?.errorCode ?? "",
    request_bytes: end?.bytesIn ?? 0,
    response_bytes: end?.bytesOut ?? 0,
    ...(begun.replayOf === undefined ? {} : { replay_of: begun.replayOf }),
  };
}

/** Describes a request with its messages. */
export function describe(entry: CapturedRequest, nowMs: number): Detail {
  const request = parseRequest(entry.request);
  const response = parseResponse(entry.response, entry.begun.method);
  return {
    ...summarize(entry, nowMs),
    request:
      request === undefined
        ? null
        : { line: redactLine(request.startLine), ...describeMessage(request) },
    response:
      response === undefined
        ? null
        : {
            line: response.startLine,
            status: statusOf(response.startLine),
            reason: /^\S+ \d{3} (.*)$/.exec(response.startLine)?.[1] ?? "",
            ...describeMessage(response),
          },
  };
}

/**
 * True if the request matches all words: `status:404`, `status:5xx`, `method:post`, or text within the path, a header or
 * a text body. Hidden credentials are not searched.
 */
export function matches(entry: CapturedRequest, words: readonly string[], nowMs: number): boolean {
  const summary = summarize(entry, nowMs);
  let text: string | undefined;
  return words.every((word) => {
    const [, name, value = ""] = /^(status|method|path):(.+)$/.exec(word) ?? [];
    if (name === "status") return matchesStatus(summary.status, value);
    if (name === "method") return summary.method.toLowerCase() === value;
    if (name === "path") return summary.path.toLowerCase().includes(value);
    if (summary.path.toLowerCase().includes(word) || summary.method.toLowerCase() === word) {
      return true;
    }
    text ??= collectText(describe(entry, nowMs));
    return text.includes(word);
  });
}

function matchesStatus(status: number, wanted: string): boolean {
  const digits = String(status).padStart(3, "0");
  return wanted.split("").every((letter, index) => letter === "x" || letter === digits[index]);
}

function collectText({ request, response }: Detail): string {
  const parts = [request, response].flatMap((message) =>
    message === null
      ? []
      : [
          ...message.headers.map(([name, value]) => `${name}: ${value}`),
          message.body.encoding === "utf8" ? message.body.text : "",
        ],
  );
  return parts.join("\n").toLowerCase();
}

function redactLine(line: string): string {
  const [method = "", path = "", version = ""] = line.split(" ");
  return `${method} ${redactPath(path)} ${version}`;
}

function describeMessage(message: Message): {
  headers: [string, string][];
  body: z.input<typeof contentSchema>;
} {
  const { fields, content, isComplete } = message;
  const decoded = decompress(message);
  const shown = decoded ?? content;
  const text = readText(shown, isComplete && decoded === undefined);
  const headers = fields.map((field): [string, string] => {
    const [name, value] = redactField(field);
    return [name, value];
  });
  return {
    headers,
    body: {
      encoding: text === undefined ? "base64" : "utf8",
      text: text === undefined ? shown.toString("base64") : redactText(text, contentTypeOf(fields)),
      bytes: content.length,
      truncated: !isComplete,
      ...(decoded === undefined ? {} : { decoded: find(fields, "content-encoding") ?? "" }),
    },
  };
}

/** Content-Type, "" if absent. */
export function contentTypeOf(fields: readonly Field[]): string {
  return find(fields, "content-type") ?? "";
}

/** Content as text, undefined if it is not UTF-8. A character that was cut off at the end is dropped. */
export function readText(content: Buffer, isComplete: boolean): string | undefined {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const text = decoder.decode(content, { stream: !isComplete });
    return text.includes("\u0000") ? undefined : text;
  } catch {
    return undefined;
  }
}
