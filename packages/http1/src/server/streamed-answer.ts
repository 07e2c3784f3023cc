// The content of streamed responses.
import { Framing } from "../parse/index.ts";
import {
  type AnswerHeaders,
  CHUNK_END,
  CHUNK_HEAD_BYTES_MAX,
  LAST_CHUNK,
  viewAsBuffer,
  writeChunkHead,
} from "../write/index.ts";
import type { Engine } from "../engine/engine.ts";
import type { ForwardClient } from "../forward/client.ts";

/** The properties of a connection that streaming needs. */
interface StreamClient extends Pick<
  ForwardClient<unknown>,
  "aborted" | "bytesOut" | "flush" | "outflow" | "socket"
> {
  readonly host: { readonly engine: Engine };
}

/** Larger chunks are written separately, not copied after their size. */
const JOINED_BYTES_MAX = 16_384;

/** The streamed responses of one connection. */
export class StreamedAnswer {
  /** A streamed response is in progress. */
  isOpen = false;
  readonly #connection: StreamClient;
  #framing: number = Framing.None;
  #remaining = 0;

  constructor(connection: StreamClient) {
    this.#connection = connection;
  }

  /** Starts a response whose head was sent. */
  begin(framing: number, contentLength: number): void {
    this.isOpen = true;
    this.#framing = framing;
    this.#remaining = framing === Framing.Length ? contentLength : 0;
  }

  /** Sends a chunk; false if the client's write buffer is full. Throws on more bytes than announced. */
  write(chunk: Uint8Array | string): boolean {
    const connection = this.#connection;
    if (connection.aborted) return true;
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (bytes.length === 0 || this.#framing === Framing.None) return true;
    this.#send(bytes);
    connection.bytesOut += bytes.length;
    connection.outflow.settle();
    return !connection.socket.writableNeedDrain;
  }

  /** Ends the content; false if it has fewer bytes than announced. */
  end(trailers: AnswerHeaders | undefined): boolean {
    this.isOpen = false;
    if (this.#framing === Framing.Length) return this.#remaining === 0;
    if (this.#framing === Framing.Chunked) this.#writeLastChunk(trailers);
    return true;
  }

  #send(bytes: Uint8Array): void {
    if (this.#framing === Framing.Chunked) {
      this.#writeChunk(bytes);
      return;
    }
    if (this.#framing === Framing.Length) {
      if (bytes.length > this.#remaining) {
        throw new Error("More bytes than the response's Content-Length");
      }
      this.#remaining -= bytes.length;
    }
    this.#connection.socket.write(bytes);
  }

  #writeChunk(bytes: Uint8Array): void {
    const { socket, host } = this.#connection;
    if (bytes.length <= JOINED_BYTES_MAX) {
      const { writer } = host.engine;
      writer.begin();
      writer.length = writeChunkHead(writer.bytes, 0, bytes.length);
      writer.raw(viewAsBuffer(bytes));
      writer.raw(CHUNK_END);
      this.#connection.flush();
      return;
    }
    const head = Buffer.allocUnsafe(CHUNK_HEAD_BYTES_MAX);
    socket.cork();
    socket.write(head.subarray(0, writeChunkHead(head, 0, bytes.length)));
    socket.write(bytes);
    socket.write(CHUNK_END);
    socket.uncork();
  }

  #writeLastChunk(trailers: AnswerHeaders | undefined): void {
    if (trailers === undefined || trailers.length === 0) {
      this.#connection.socket.write(LAST_CHUNK);
      return;
    }
    const { writer } = this.#connection.host.engine;
    writer.begin();
    writer.byte(0x30);
    writer.lineEnd();
    for (const [name, value] of trailers) writer.field(name, value);
    writer.endHead();
    this.#connection.flush();
  }
}
