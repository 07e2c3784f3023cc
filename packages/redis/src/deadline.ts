// Replies that are worth nothing after some time.

/** Resolves like `reply`, but rejects if it takes longer than `deadlineMs`. */
export async function withDeadline<T>(reply: Promise<T>, deadlineMs: number): Promise<T> {
  const startMs = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    // A burst that keeps this thread busy must not look like a slow Redis: a timer begins with the clock of the event loop,
    // which then lags behind, and runs before the reads that have the reply.
    const wait = (leftMs: number): void => {
      timer = setTimeout(() => setImmediate(check), leftMs);
    };
    const check = (): void => {
      const leftMs = deadlineMs - (performance.now() - startMs);
      if (leftMs > 0) wait(Math.ceil(leftMs));
      else reject(new Error(`no reply within ${deadlineMs} ms`));
    };
    wait(deadlineMs);
  });
  try {
    return await Promise.race([reply, late]);
  } finally {
    clearTimeout(timer);
  }
}
