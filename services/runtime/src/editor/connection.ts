// JSON-RPC 2.0 over a pair of streams, in the framing of the Language Server Protocol.
import type { Readable, Writable } from "node:stream";
import { ERROR_CODES, ResponseError } from "./protocol.ts";

const HEADER_BYTES_MAX = 4_096;
const MESSAGE_BYTES_MAX = 67_108_864;
/** Requests that wait for an answer, in each direction. */
const WAITING_MAX = 1_000;
/** While the other side does not read this much, nothing more is read from it. */
const UNREAD_BYTES_MAX = 67_108_864;
const HEADER_END = Buffer.from("\r\n\r\n");

/** Options of a connection. */
export interface ConnectionOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Answers a request; a ResponseError is sent as it is. Requests and notifications are called in their order. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => unknown;
  readonly onNotification: (method: string, params: unknown) => void;
  /** Called once, with the reason if the stream broke the protocol. */
  readonly onClose: (reason?: Error) => void;
}

interface Message {
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/** One side of a conversation. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #answering = new Map<number | string, AbortController>();
  readonly #chunks: Buffer[] = [];
  #buffered = 0;
  /** Length of the message whose header is read. */
  #expected: number | undefined;
  #lastId = 0;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { input, output } = options;
    input.on("data", (chunk: Buffer) => this.#receive(chunk));
    input.once("end", () => this.close());
    input.once("error", (error) => this.close(error));
    output.once("error", (error) => this.close(error));
    output.on("drain", () => input.resume());
  }

  /** Sends a request. Rejects with the error of the answer, or if the connection ends; `signal` cancels it. */
  request<Result>(method: string, params: unknown, signal?: AbortSignal): Promise<Result> {
    if (this.#closed) return Promise.reject(createClosedError());
    if (this.#waiting.size >= WAITING_MAX) {
      const message = `more than ${WAITING_MAX} requests wait for an answer`;
      return Promise.reject(new ResponseError(ERROR_CODES.requestFailed, message));
    }
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.set(id, { resolve, reject });
    this.#send({ id, method, params });
    // The answer to a cancelled request is still awaited: it says that the work has ended.
    const cancel = (): void => this.notify("$/cancelRequest", { id });
    if (signal?.aborted === true) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", cancel));
  }

  notify(method: string, params: unknown): void {
    if (!this.#closed) this.#send({ method, params });
  }

  /** Ends the conversation; requests that wait are rejected. */
  close(reason?: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { reject } of this.#waiting.values()) reject(createClosedError());
    this.#waiting.clear();
    for (const controller of this.#answering.values()) controller.abort();
    this.#answering.clear();
    this.#options.onClose(reason);
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    while (!this.#closed && this.#readMessage());
    const { input, output } = this.#options;
    if (output.writableLength > UNREAD_BYTES_MAX) input.pause();
  }

  /** Reads one message; false if it is not complete. */
  #readMessage(): boolean {
    if (this.#expected === undefined && !this.#readHeader()) return false;
    const length = this.#expected;
    if (length === undefined || this.#buffered < length) return false;
    const bytes = this.#join();
    this.#keep(bytes.subarray(length));
    this.#expected = undefined;
    this.#parse(bytes.subarray(0, length).toString("utf8"));
    return true;
  }

  #readHeader(): boolean {
    if (this.#buffered === 0) return false;
    const bytes = this.#join();
    const end = bytes.indexOf(HEADER_END);
    if (end === -1 && bytes.length <= HEADER_BYTES_MAX) return false;
    const header = bytes.subarray(0, Math.max(0, end)).toString("latin1");
    const length = Number(/^content-length: *(\d+) *$/im.exec(header)?.[1] ?? NaN);
    if (!(length <= MESSAGE_BYTES_MAX)) {
      const found = Number.isNaN(length) ? "none" : String(length);
      const message = `expected a header Content-Length of at most ${MESSAGE_BYTES_MAX}, found ${found}`;
      this.#refuse(ERROR_CODES.invalidRequest, message);
      this.close(new Error(message));
      return false;
    }
    this.#expected = length;
    this.#keep(bytes.subarray(end + HEADER_END.length));
    return true;
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#keep(Buffer.concat(this.#chunks));
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  #keep(bytes: Buffer): void {
    this.#chunks.length = 0;
    if (bytes.length > 0) this.#chunks.push(bytes);
    this.#buffered = bytes.length;
  }

  #parse(text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      this.#refuse(ERROR_CODES.parseError, "the message is not JSON");
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      this.#refuse(ERROR_CODES.invalidRequest, "the message is not a JSON object");
      return;
    }
    const { id, method } = message;
    if (typeof method !== "string") this.#settle(message);
    else if (id === undefined || id === null) this.#acceptNotification(method, message.params);
    else void this.#answer(id, method, message.params);
  }

  #settle({ id, result, error }: Message): void {
    const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined;
    if (waiting === undefined) return;
    this.#waiting.delete(id as number);
    if (error === undefined) waiting.resolve(result as never);
    else waiting.reject(new ResponseError(error.code, error.message));
  }

  #acceptNotification(method: string, params: unknown): void {
    if (method !== "$/cancelRequest") {
      this.#options.onNotification(method, params);
      return;
    }
    const { id } = (params ?? {}) as { id?: number | string };
    if (id !== undefined) this.#answering.get(id)?.abort();
  }

  async #answer(id: number | string, method: string, params: unknown): Promise<void> {
    if (this.#answering.size >= WAITING_MAX) {
      const message = `more than ${WAITING_MAX} requests wait for an answer`;
      this.#send({ id, error: { code: ERROR_CODES.requestFailed, message } });
      return;
    }
    const controller = new AbortController();
    this.#answering.set(id, controller);
    try {
      const result = await this.#options.onRequest(method, params, controller.signal);
      if (!this.#closed) this.#send({ id, result: result ?? null });
    } catch (error) {
      const code = error instanceof ResponseError ? error.code : ERROR_CODES.internalError;
      if (!this.#closed) this.#send({ id, error: { code, message: (error as Error).message } });
    } finally {
      this.#answering.delete(id);
    }
  }

  #refuse(code: number, message: string): void {
    this.#send({ id: null, error: { code, message } });
  }

  #send(message: Message): void {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    const { output } = this.#options;
    if (!output.writable) return;
    output.write(`Content-Length: ${body.length}\r\n\r\n`);
    output.write(body);
  }
}

function createClosedError(): ResponseError {
  return new ResponseError(ERROR_CODES.requestFailed, "the connection has ended");
}
