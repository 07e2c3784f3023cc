// The body of a request as a stream with back-pressure.
import { type Exchange, Framing } from "@platform/http1";
import { S3Error } from "../model/s3-error.ts";

/** The client has disconnected, so an answer is pointless. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
  constructor() {
    super("the client closed the connection");
  }
}

/** Receives a chunk of a body, which is valid until the function returns. A promise delays the client until it settles. */
export type TakeChunk = (chunk: Buffer) => Promise<void> | void | undefined;

/** A body that has not been read yet. */
export interface BodySource {
  /** The declared length; `undefined` if it is not known. */
  readonly contentLength: number | undefined;
  /** Reads the whole body, chunk by chunk. Rejects with an S3Error, with ClientGone, or with the error of `take`. */
  receive(take: TakeChunk, bytesMax: number): Promise<void>;
}

/** The body of a request to the object API. */
export class RequestBody implements BodySource {
  readonly #exchange: Exchange;
  /** `undefined` for a chunked body. */
  readonly contentLength: number | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    const { framing, contentLength } = exchange.head;
    this.contentLength = framing === Framing.Chunked ? undefined : contentLength;
  }

  receive(take: TakeChunk, bytesMax: number): Promise<void> {
    const exchange = this.#exchange;
    exchange.bodyBytesMax = bytesMax;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let failed = false;
    const fail = (error: unknown): void => {
      failed = true;
      exchange.pauseBody();
      reject(error instanceof Error ? error : new Error("a body could not be received"));
    };
    // A chunk may arrive while the previous one is being processed: chunks wait in order.
    const waiting: { chunk: Buffer; isLast: boolean }[] = [];
    let isBusy = false;
    const passWaiting = (): void => {
      for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) {
        const { chunk, isLast } = piece;
        const taken = chunk.length === 0 ? undefined : take(chunk);
        if (taken === undefined) {
          if (isLast) resolve();
          continue;
        }
        isBusy = true;
        if (!isLast) exchange.pauseBody();
        taken.then(() => {
          isBusy = false;
          if (failed) return;
          if (isLast) resolve();
          pass();
          if (!isLast && !isBusy && !failed) exchange.resumeBody();
        }, fail);
        return;
      }
    };
    const pass = (): void => {
      if (failed || isBusy) return;
      try {
        passWaiting();
      } catch (error) {
        fail(error);
      }
    };
    exchange.onAborted = () => {
      failed = true;
      reject(new ClientGone());
    };
    exchange.streamBody({
      keepsPieces: false,
      onBody: (bytes, start, end, isLast) => {
        const chunk = bytes.subarray(start, end);
        waiting.push({ chunk: isBusy ? Buffer.from(chunk) : chunk, isLast });
        pass();
      },
      onBodyRefused: ({ status }) => {
        failed = true;
        reject(toBodyError(status));
      },
    });
    return promise;
  }
}

function toBodyError(status: number): S3Error {
  if (status === 413) return new S3Error("EntityTooLarge");
  if (status === 408) return new S3Error("RequestTimeout");
  return new S3Error("IncompleteBody", "The framing of the body is not valid.");
}
