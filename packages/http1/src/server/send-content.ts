// Sends a response whose content is read from a source as fast as the client accepts it.
import type { ContentSource, StreamStart } from "../contract/content.ts";
import type { Exchange } from "../contract/exchange.ts";
import { Method } from "../parse/index.ts";

/**
 * Answers a request with a head and the content of `source`, which is closed exactly once. Sets `onDrain` and `onAborted`
 * of the exchange. A source that fails, or ends before the announced length, destroys the client's connection; it is not
 * read for HEAD.
 *
 * ```ts
 * sendContent(exchange, { status: 200, contentLength: 5 }, source);
 * ```
 */
export function sendContent<U>(
  exchange: Exchange<U>,
  start: StreamStart,
  source: ContentSource,
): void {
  const { sequence } = exchange;
  let isOpen = true;
  let isReading = false;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    source.close();
  };
  const fail = (): void => {
    if (!isOpen) return;
    close();
    if (exchange.sequence === sequence) exchange.destroy();
  };
  /** False if the client accepts nothing now, or nothing is left. */
  const send = (bytes: Buffer | null): boolean => {
    if (bytes === null) {
      close();
      exchange.end();
      return false;
    }
    return exchange.write(bytes);
  };
  const pump = (): void => {
    try {
      for (;;) {
        if (!isOpen || isReading) return;
        const bytes = source.read();
        if (bytes instanceof Promise) {
          isReading = true;
          bytes.then(proceed, fail);
          return;
        }
        if (!send(bytes)) return;
      }
    } catch {
      fail();
    }
  };
  const proceed = (bytes: Buffer | null): void => {
    isReading = false;
    if (!isOpen) return;
    try {
      if (send(bytes)) pump();
    } catch {
      fail();
    }
  };
  try {
    exchange.startResponse(start);
  } catch (error) {
    close();
    throw error;
  }
  exchange.onAborted = close;
  exchange.onDrain = pump;
  if (exchange.aborted) {
    close();
    exchange.end();
    return;
  }
  if (exchange.head.methodId === Method.HEAD) send(null);
  else pump();
}
