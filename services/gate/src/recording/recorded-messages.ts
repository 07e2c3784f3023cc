// Recorded exchanges for guests that run outside of a gateway: no request is sent.
import { type BodyPart, FieldList, type GuestMessages } from "@platform/wasm/http";
import type { RecordedBody, RecordedExchange } from "./recorded-exchange.ts";

const BODY_BYTES_MAX = 8 * 1024 * 1024;

/** A recorded exchange as the messages of one guest. Redacted values are passed as they are recorded. */
export class RecordedMessages implements GuestMessages {
  method: string;
  uri: string;
  readonly protocolVersion = "HTTP/1.1";
  /** Recordings do not contain the port. */
  readonly sourceAddress = "0.0.0.0:0";
  status: number;
  readonly requestFields: FieldList;
  readonly responseFields: FieldList;
  readonly requestBodyBytesMax = BODY_BYTES_MAX;
  readonly responseBodyBytesMax = BODY_BYTES_MAX;
  readonly #requestBody: Buffer;
  readonly #responseBody: Buffer;
  #isBuffered = false;

  constructor({ request, response }: RecordedExchange) {
    this.method = request.method;
    this.uri = request.target;
    this.requestFields = new FieldList(request.headers);
    this.#requestBody = readBody(request.body);
    this.status = response.status;
    this.responseFields = new FieldList(response.headers);
    this.#responseBody = readBody(response.body);
  }

  /** Before a response there are neither fields nor a status of it. */
  static forRequest(exchange: RecordedExchange): RecordedMessages {
    const response = { ...exchange.response, status: 200, headers: [] };
    return new RecordedMessages({ ...exchange, response });
  }

  /** The guest has asked to buffer the response. */
  buffer(): void {
    this.#isBuffered = true;
  }

  readRequestBody(): BodyPart {
    return { bytes: this.#requestBody, isLast: true };
  }

  readResponseBody(): Uint8Array {
    return this.#isBuffered ? this.#responseBody : Buffer.alloc(0);
  }
}

function readBody(body: RecordedBody): Buffer {
  if ("text" in body) return Buffer.from(body.text);
  return "base64" in body ? Buffer.from(body.base64, "base64") : Buffer.alloc(0);
}
