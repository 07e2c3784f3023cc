// Requests and answers of the fakes.
import type { IncomingMessage, ServerResponse } from "node:http";

/** A request with its whole body. */
export interface FakeRequest {
  readonly method: string;
  /** Path below the fake's own one, decoded, without a leading slash. */
  readonly path: string;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** An answer. A stream is written by its fake. */
export interface FakeAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly stream?: (response: ServerResponse) => void;
}

/** A refusal in the error format of the platform. */
export class FakeRefusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Largest body of a request: that of a part of an upload. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** Reads a body. Throws a FakeRefusal if it is too large. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > BODY_BYTES_MAX) {
      throw new FakeRefusal(413, "payload_too_large", "The body is too large for a fake.");
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Parses a body as JSON. Throws a FakeRefusal. */
export function parseJson({ body }: FakeRequest): Record<string, unknown> {
  try {
    return JSON.parse(body.toString("utf8")) as Record<string, unknown>;
  } catch {
    throw new FakeRefusal(400, "bad_request", "The body is not JSON.");
  }
}

/** An answer with JSON. */
export function answerJson(value: unknown, status = 200): FakeAnswer {
  const headers = { "Content-Type": "application/json" };
  return { status, headers, body: JSON.stringify(value) };
}
