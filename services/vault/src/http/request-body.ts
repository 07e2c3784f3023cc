// A request's body as a stream with back-pressure towards the client.
import { Framing } from "@platform/http1";
import type { Exchange } from "@platform/http1";
import { S3Error } from "../wire/error.ts";

/** The client went away: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
  constructor() {
    super("the client closed the connection");
  }
}

/** Takes a piece of a body. A promise holds the client back until it settles. */
export type TakeChunk = (chunk: Buffer) => Promise<void> | void | undefined;

/** A body that has not been read yet. */
export class RequestBody {
  readonly #exchange: Exchange;
  /** Bytes announced; undefined where the body is chunked. */
  readonly contentLength: number | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    const { framing, contentLength } = exchange.head;
    this.contentLength = framing === Framing.Chunked ? undefined : contentLength;
  }

  /** Reads the body to its end, one piece after another. Rejects with S3Error, ClientGone or what `take` threw. */
  receive(take: TakeChunk, bytesMax: number): Promise<void> {
    const exchange = this.#exchange;
    exchange.bodyBytesMax = bytesMax;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let failed = false;
    const fail = (error: unknown): void => {
      failed = true;
      exchange.pauseBody();
      reject(error instanceof Error ? error : new Error("a body could not be taken"));
    };
    // A piece may come while the one before is still being taken: those wait, in order.
    const waiting: { chunk: Buffer; isLast: boolean }[] = [];
    let isBusy = false;
    const pass = (chunk: Buffer, isLast: boolean): void => {
      if (failed) return;
      if (isBusy) {
        waiting.push({ chunk, isLast });
        return;
      }
      let taken: Promise<void> | void | undefined;
      try {
        taken = chunk.length === 0 ? undefined : take(chunk);
      } catch (error) {
        fail(error);
        return;
      }
      if (taken === undefined) {
        if (isLast) resolve();
        return;
      }
      isBusy = true;
      if (!isLast) exchange.pauseBody();
      taken.then(() => {
        isBusy = false;
        if (isLast) resolve();
        const next = waiting.shift();
        if (next !== undefined) pass(next.chunk, next.isLast);
        else if (!isLast && !failed) exchange.resumeBody();
      }, fail);
    };
    exchange.onAborted = () => {
      failed = true;
      reject(new ClientGone());
    };
    exchange.streamBody({
      onBody: (bytes, start, end, isLast) => pass(bytes.subarray(start, end), isLast),
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
