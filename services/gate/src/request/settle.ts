// Continues a request with a result that may be available only later.
import { toPlatformError } from "@platform/kernel/errors";
import { answerError } from "../exchange/answers.ts";
import type { GateExchange } from "../exchange/exchange.ts";

/** Continuations of a result. */
export interface Continuations<T> {
  onResult: (value: T) => void;
  /** The request ended before the result was available. */
  onLate?: (value: T) => void;
  /** A continuation failed: the request is destroyed. */
  onError: (error: unknown) => void;
}

/**
 * Continues synchronously if the result is available, otherwise when it is and if the request still exists. Answers the
 * request with the error that `judge` throws or rejects with.
 */
export function settle<T>(
  exchange: GateExchange,
  judge: () => T | Promise<T>,
  continuations: Continuations<T>,
): void {
  let result: T | Promise<T>;
  try {
    result = judge();
  } catch (error) {
    answerError(exchange, toPlatformError(error));
    return;
  }
  if (result instanceof Promise) settleLater(exchange, result, continuations);
  else continuations.onResult(result);
}

/** Like {@link settle} for a promise. */
export function settleLater<T>(
  exchange: GateExchange,
  result: Promise<T>,
  { onResult, onLate, onError }: Continuations<T>,
): void {
  const { sequence } = exchange;
  const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
  const proceed = async (): Promise<void> => {
    let value: T;
    try {
      value = await result;
    } catch (error) {
      if (!isOver()) answerError(exchange, toPlatformError(error));
      return;
    }
    if (!isOver()) onResult(value);
    else onLate?.(value);
  };
  proceed().catch((error: unknown) => {
    onError(error);
    if (!isOver()) exchange.destroy();
  });
}
