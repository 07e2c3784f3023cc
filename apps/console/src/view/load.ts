// Loading of data for a view.
import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiFailure } from "../api/api.ts";
import { isTransient, retryDelayMs } from "../api/retry.ts";

/** Data of a view, its failure, and a way to load it again. */
export interface Loaded<Data> {
  /** Undefined until it is loaded; kept while it is loaded again. */
  data: ReadonlySignal<Data | undefined>;
  failure: ReadonlySignal<ApiFailure | undefined>;
  /** Epoch ms of the first of the failures since the last success. */
  failedMs: ReadonlySignal<number | undefined>;
  isLoading: ReadonlySignal<boolean>;
  /** Loads again. */
  reload: () => Promise<void>;
  /** Replaces the data, for answers of changes. */
  set: (data: Data) => void;
}

/**
 * Loads data when `key` changes, and every `everyMs` while the tab is visible. Without an answer it is loaded again until
 * there is one.
 */
export function useLoad<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
  everyMs?: number,
): Loaded<Data> {
  const state = useMemo(() => {
    const data = signal<Data | undefined>(undefined);
    const failure = signal<ApiFailure | undefined>(undefined);
    const failedMs = signal<number | undefined>(undefined);
    const isLoading = signal(false);
    let attempts = 0;
    let timer = 0;
    let current: AbortController | undefined;
    const reload = async (): Promise<void> => {
      current?.abort();
      clearTimeout(timer);
      const mine = (current = new AbortController());
      isLoading.value = true;
      try {
        const found = await load(mine.signal);
        if (current !== mine) return;
        data.value = found;
        failure.value = undefined;
        failedMs.value = undefined;
        attempts = 0;
      } catch (error) {
        if (current !== mine) return;
        const found = toFailure(error);
        failedMs.value ??= Date.now();
        failure.value = found;
        if (isTransient(found)) retryLater(found.retryAfterS);
      } finally {
        if (current === mine) isLoading.value = false;
      }
    };
    const retryLater = (afterS = 0): void => {
      const waitMs = Math.max(retryDelayMs(attempts), afterS * 1000);
      attempts += 1;
      timer = window.setTimeout(() => {
        // Nobody looks: the next attempt can wait.
        if (document.hidden) retryLater();
        else void reload();
      }, waitMs);
    };
    const stop = (): void => {
      clearTimeout(timer);
      current?.abort();
      current = undefined;
    };
    const set = (next: Data): void => {
      data.value = next;
    };
    return { data, failure, failedMs, isLoading, reload, set, stop };
  }, [key]);
  useEffect(() => {
    void state.reload();
    if (everyMs === undefined) return () => state.stop();
    const timer = setInterval(() => {
      if (!document.hidden && !state.isLoading.value) void state.reload();
    }, everyMs);
    return () => {
      clearInterval(timer);
      state.stop();
    };
  }, [state]);
  return state;
}

/** A caught value as a failure; throws what is not one. */
export function toFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure(0, { detail: error instanceof Error ? error.message : String(error) });
}
