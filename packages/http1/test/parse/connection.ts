// Runs the parser and the decoder like a server's connection does, for tests.
import {
  Chunk,
  ChunkedDecoder,
  Framing,
  Parse,
  type Refusal,
  type RequestLimits,
  RequestParser,
} from "../../src/parse/index.ts";

/** A parsed request with its content. */
export interface SeenRequest {
  method: string;
  target: string;
  fields: [string, string][];
  body: string;
  trailers: [string, string][];
  keepAlive: boolean;
}

/** Parses bytes that arrive in pieces of any size, and lists the requests. */
export class SeenConnection {
  readonly requests: SeenRequest[] = [];
  refusal: Refusal | null = null;
  private readonly parser: RequestParser;
  private readonly decoder = new ChunkedDecoder();
  private current: SeenRequest | null = null;
  private remaining = 0;

  constructor(limits: RequestLimits = {}) {
    this.parser = new RequestParser(limits);
  }

  /** True if a request has begun but is not complete. */
  get pending(): boolean {
    return this.refusal === null && (this.current !== null || this.parser.begun);
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (this.refusal === null && at < chunk.length) {
      if (this.current === null) at = this.pushHead(chunk, at);
      else if (this.parser.framing === Framing.Chunked) at = this.pushChunked(chunk, at);
      else at = this.pushLength(chunk, at);
    }
  }

  private pushHead(chunk: Buffer, start: number): number {
    const { parser } = this;
    const status = parser.execute(chunk, start, chunk.length);
    if (status === Parse.Refused) this.refusal = parser.refusal;
    if (status !== Parse.Complete) return chunk.length;
    this.current = {
      method: parser.method,
      target: parser.targetString(),
      fields: [...parser.fields.entries()],
      body: "",
      trailers: [],
      keepAlive: parser.keepAlive,
    };
    this.remaining = parser.framing === Framing.Length ? parser.contentLength : 0;
    if (parser.framing === Framing.None) this.finish();
    return parser.next;
  }

  private pushLength(chunk: Buffer, start: number): number {
    const taken = Math.min(this.remaining, chunk.length - start);
    this.current!.body += chunk.toString("latin1", start, start + taken);
    this.remaining -= taken;
    if (this.remaining === 0) this.finish();
    return start + taken;
  }

  private pushChunked(chunk: Buffer, start: number): number {
    const { decoder } = this;
    const status = decoder.execute(chunk, start, chunk.length);
    if (status === Chunk.Data) {
      this.current!.body += chunk.toString("latin1", decoder.dataStart, decoder.dataEnd);
    } else if (status === Chunk.Refused) this.refusal = decoder.refusal;
    else if (status === Chunk.Complete) {
      this.current!.trailers = [...decoder.trailers.entries()];
      this.finish();
    }
    return decoder.next;
  }

  private finish(): void {
    this.requests.push(this.current!);
    this.current = null;
    this.parser.reset();
    this.decoder.reset();
  }
}
