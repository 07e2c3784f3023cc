// Reading of request bodies: whole, within the memory for all bodies, or as a stream.
import { createRetryLaterError, type PlatformError } from "@platform/kernel/errors";
import type { BodyBudget } from "@platform/kernel/http-parts";
import { HttpError } from "../error/http-error.ts";
import type { Call } from "./call.ts";

/** Reads a whole body, then calls `done`; `fail` receives the error of a body that is refused. */
export function collectBody(
  call: Call,
  bytesMax: number,
  budget: BodyBudget,
  done: (body: Buffer) => void,
  fail: (error: PlatformError) => void,
): void {
  const { exchange } = call;
  const pieces: Buffer[] = [];
  const reservation = budget.open(exchange.connection.remoteAddress);
  call.reservation = reservation;
  let isRefused = false;
  exchange.bodyBytesMax = bytesMax;
  exchange.streamBody({
    onBody: (bytes, start, end, isLast) => {
      if (isRefused) return;
      if (end > start) {
        if (!reservation.tryAdd(end - start)) {
          isRefused = true;
          fail(tooManyBodies());
          return;
        }
        pieces.push(bytes.subarray(start, end));
      }
      if (isLast) done(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
    },
    onBodyRefused: ({ status, detail }) => {
      isRefused = true;
      fail(describeRefusal(status, detail, bytesMax));
    },
  });
}

/**
 * Streams a body. The client is paused while nothing reads the stream, which fails if the body is refused or the client
 * disconnects.
 */
export function streamBody(call: Call, bytesMax: number): ReadableStream<Uint8Array> {
  const { exchange } = call;
  exchange.bodyBytesMax = bytesMax;
  let isDone = false;
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const fail = (error: Error): void => {
          if (isDone) return;
          isDone = true;
          controller.error(error);
        };
        call.onOver(() => fail(new Error("the request ended before its body was read")));
        exchange.streamBody({
          onBody: (bytes, start, end, isLast) => {
            if (isDone) return;
            // The buffer belongs to the server.
            if (end > start) controller.enqueue(Uint8Array.from(bytes.subarray(start, end)));
            if (isLast) {
              isDone = true;
              controller.close();
            } else if ((controller.desiredSize ?? 0) <= 0) exchange.pauseBody();
          },
          onBodyRefused: ({ status, detail }) => fail(describeRefusal(status, detail, bytesMax)),
        });
      },
      pull: () => {
        if (!isDone && !call.isOver) exchange.resumeBody();
      },
      cancel: () => {
        isDone = true;
        if (!call.isOver) exchange.resumeBody();
      },
    },
    { highWaterMark: 65_536, size: (chunk) => chunk.byteLength },
  );
}

function describeRefusal(status: number, detail: string, bytesMax: number): PlatformError {
  if (status === 413) return new HttpError(413, `The body is larger than ${bytesMax} bytes.`);
  return new HttpError(status, detail);
}

function tooManyBodies(): PlatformError {
  return createRetryLaterError("overloaded", "Too many large requests are being received.", 2);
}
