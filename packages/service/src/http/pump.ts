// Streamed answers: chunks with backpressure, ended with the client or the service.
import type { StreamHead } from "@platform/http1";
import type { Call } from "./call.ts";

/** A chunk of an answer. */
export type Chunk = string | Uint8Array;

/**
 * Sends the chunks of a source as they arrive. The source is closed if the client disconnects or the service stops; the
 * connection is destroyed if the source fails, so that the answer does not look complete.
 */
export async function pump(
  call: Call,
  head: StreamHead,
  source: AsyncIterable<Chunk>,
  onError: (error: unknown) => void,
): Promise<void> {
  const { exchange } = call;
  const iterator = source[Symbol.asyncIterator]();
  try {
    exchange.startResponse(head);
  } catch (error) {
    closeSource(iterator, onError);
    throw error;
  }
  // A source may wait for long, so its end must not depend on the next chunk.
  const stopped = new Promise<IteratorReturnResult<undefined>>((resolve) => {
    const stop = (): void => resolve({ done: true, value: undefined });
    call.onOver(stop);
    call.signal.addEventListener("abort", stop, { once: true });
  });
  const isStopped = (): boolean => call.isOver || call.signal.aborted;
  try {
    while (!isStopped() && call.method !== "HEAD") {
      const { done, value } = await Promise.race([iterator.next(), stopped]);
      if (done === true || isStopped()) break;
      if (!exchange.write(value)) await drained(call);
    }
    if (!isStopped()) expectComplete(call, head);
    if (!call.isOver) exchange.end();
  } catch (error) {
    onError(error);
    if (!call.isOver) exchange.destroy();
  } finally {
    closeSource(iterator, onError);
  }
}

/** Throws if the source ended before the content had its announced length. */
function expectComplete({ exchange, method }: Call, { contentLength = 0 }: StreamHead): void {
  if (method === "HEAD" || exchange.bytesOut >= contentLength) return;
  throw new Error(`the answer ended after ${exchange.bytesOut} of ${contentLength} bytes`);
}

function closeSource(iterator: AsyncIterator<Chunk>, onError: (error: unknown) => void): void {
  // Not awaited: a generator that waits closes only when it continues.
  iterator.return?.().catch(onError);
}

function drained(call: Call): Promise<void> {
  return new Promise((resolve) => {
    call.exchange.onDrain = () => resolve();
    call.onOver(resolve);
  });
}
