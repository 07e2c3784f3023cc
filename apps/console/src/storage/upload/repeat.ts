// Requests of uploads that are repeated after temporary failures, later each time.
import type { ApiFailure } from "../../api/api.ts";
import { toFailure } from "../../view/load.ts";

const TRIES_MAX = 5;
const RETRY_MS = 1_000;
const RETRY_MS_MAX = 16_000;

/** Repeats work after temporary failures, at most five times. While the browser has no network it waits. */
export async function repeat<Result>(
  stop: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      stop.throwIfAborted();
      const failure = toFailure(error);
      if (!isTemporary(failure) || tries >= TRIES_MAX) throw failure;
      const delayMs = Math.min(RETRY_MS * 2 ** (tries - 1), RETRY_MS_MAX);
      await wait(failure.retryAfterS === undefined ? delayMs : failure.retryAfterS * 1_000, stop);
      await waitForNetwork(stop);
    }
  }
}

function isTemporary({ status, reason }: ApiFailure): boolean {
  if (reason !== undefined && reason !== "service_down") return false;
  return status === 0 || status === 408 || status === 429 || (status >= 500 && status !== 507);
}

async function wait(ms: number, stop: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await orAborted(promise, stop);
  clearTimeout(timer);
}

/** Waits while the browser knows that it has no network: tries would only be used up. */
async function waitForNetwork(stop: AbortSignal): Promise<void> {
  if (navigator.onLine) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  addEventListener("online", () => resolve(), { once: true });
  await orAborted(promise, stop);
}

async function orAborted(wanted: Promise<void>, stop: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(stop.reason as Error);
  stop.addEventListener("abort", abort, { once: true });
  try {
    stop.throwIfAborted();
    await Promise.race([wanted, promise]);
  } finally {
    stop.removeEventListener("abort", abort);
  }
}
